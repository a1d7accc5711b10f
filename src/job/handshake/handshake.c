#include "job/handshake/handshake.h"

#include "job/network/peer.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MAGIC UINT64_C(0x6d6573686a6f696e)
enum { VERSION = 4 };

_Static_assert(sizeof(mc_challenge_t) == 32 && sizeof(mc_endpoint_t) == 24, "no padding is sent");
_Static_assert(sizeof(mc_hello_t) == 16 + 48 + 16 + 48 + 32, "no padding is sent");
_Static_assert(sizeof(mc_answer_t) == 16 + 48 + 8 + 16 + 32, "no padding is sent");

const char *mc_answer_text(uint32_t code)
{
    static const char *const text[MC_ANSWERS] = {
        [MC_ANSWER_OK] = "accepted",
        [MC_ANSWER_LATER] = "it creates another mesh than rank 0 does now",
        [MC_ANSWER_OTHER_JOB] = "it belongs to another job",
        [MC_ANSWER_VERSION] = "it uses another version of meshcoll",
        [MC_ANSWER_SECRET] = "its secret differs (MESHCOLL_SECRET, MESHCOLL_SECRET_FILE)",
        [MC_ANSWER_SIZE] = "its number of ranks differs from that of rank 0",
        [MC_ANSWER_RANK] = "there is no such rank, or it is rank 0's",
        [MC_ANSWER_TWICE] = "another process has joined as that rank",
        [MC_ANSWER_USER] = "it is of another user of this machine, without a secret "
                           "(MESHCOLL_SECRET, MESHCOLL_SECRET_FILE)",
    };
    return code < MC_ANSWERS ? text[code] : "for a reason that this version does not know";
}

static int draw(unsigned char nonce[MC_NONCE])
{
    return getrandom(nonce, MC_NONCE, 0) == MC_NONCE ? 0 : EIO;
}

/* libcrypto frees what it needs at exit(), which other threads of this process outlive: a monitor that is greeted then
 * would crash. From then on nothing here uses it. */
static pthread_mutex_t crypto_lock = PTHREAD_MUTEX_INITIALIZER;
static bool crypto_is_gone;

static void lock_crypto(void)
{
    pthread_mutex_lock(&crypto_lock);
}

static void unlock_crypto(void)
{
    pthread_mutex_unlock(&crypto_lock);
}

static void leave_crypto(void)
{
    lock_crypto();
    crypto_is_gone = true;
    unlock_crypto();
}

/* What is registered last is called first. */
static void open_crypto(void)
{
    const bool opened = OPENSSL_init_crypto(0, NULL);
    crypto_is_gone = !opened || atexit(leave_crypto) ||
                     pthread_atfork(lock_crypto, unlock_crypto, unlock_crypto);
}

/* True: it may be used until unlock_crypto. */
static bool enter_crypto(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_crypto);
    lock_crypto();
    if (!crypto_is_gone)
        return true;
    unlock_crypto();
    return false;
}

int mc_digest_extend(unsigned char digest[MC_DIGEST], const void *data, size_t bytes)
{
    bool done = enter_crypto();
    if (done) {
        EVP_MD_CTX *const c = EVP_MD_CTX_new();
        done = c && EVP_DigestInit_ex(c, EVP_sha256(), NULL) &&
               EVP_DigestUpdate(c, digest, MC_DIGEST) && EVP_DigestUpdate(c, data, bytes) &&
               EVP_DigestFinal_ex(c, digest, NULL);
        EVP_MD_CTX_free(c);
        unlock_crypto();
    }
    return done ? MESHCOLL_OK : mc_fail(MESHCOLL_ERR_IO, "libcrypto makes no SHA-256");
}

/* What a mac is made of. */
typedef struct {
    char role[16];
    unsigned char challenge[MC_NONCE], hello[MC_NONCE], message[offsetof(mc_hello_t, mac)];
} signed_t;

_Static_assert(offsetof(mc_answer_t, mac) <= offsetof(mc_hello_t, mac), "it fits");

/* Of a message up to its mac. 0, or EIO: libcrypto refuses. */
static int sign(const mc_self_t *self, const char *role, const mc_challenge_t *challenge,
                const mc_hello_t *hello, const void *message, size_t bytes,
                unsigned char mac[MC_DIGEST])
{
    signed_t s = {.role = ""};
    mc_text_t text = mc_text(s.role, sizeof s.role);
    mc_text_add(&text, "%s", role);
    memcpy(s.challenge, challenge->nonce, MC_NONCE);
    memcpy(s.hello, hello->nonce, MC_NONCE);
    memcpy(s.message, message, bytes);
    if (!enter_crypto())
        return EIO;
    const bool done =
        HMAC(EVP_sha256(), self->key, MC_DIGEST, (const unsigned char *)&s, sizeof s, mac, NULL);
    unlock_crypto();
    return done ? 0 : EIO;
}

int mc_handshake_sign_hello(const mc_self_t *self, const mc_challenge_t *challenge,
                            mc_hello_t *hello)
{
    return sign(self, "hello", challenge, hello, hello, offsetof(mc_hello_t, mac), hello->mac);
}

int mc_handshake_sign_answer(const mc_self_t *self, const mc_challenge_t *challenge,
                             const mc_hello_t *hello, mc_answer_t *answer)
{
    return sign(self, "answer", challenge, hello, answer, offsetof(mc_answer_t, mac), answer->mac);
}

bool mc_handshake_is_stranger(const mc_self_t *self, int fd)
{
    return !self->has_secret && mc_peer_find(fd) == MC_PEER_STRANGER;
}

/* The side that listens ------------------------------------------------------------------------ */

/* What is sent here fits into the buffers of a fresh connection. */
int mc_handshake_challenge(int fd, mc_challenge_t *challenge)
{
    *challenge = (mc_challenge_t){.magic = MAGIC, .version = VERSION};
    const int failed = draw(challenge->nonce);
    return failed ? failed : mc_wire_send(fd, challenge, sizeof *challenge, 0);
}

bool mc_handshake_greets(const mc_hello_t *hello)
{
    return hello->magic == MAGIC;
}

mc_answer_code_t mc_handshake_judge(const mc_self_t *self, const mc_challenge_t *challenge,
                                    const mc_hello_t *hello)
{
    mc_hello_t expected = *hello;
    if (hello->version != VERSION)
        return MC_ANSWER_VERSION;
    if (memcmp(hello->job, self->job, sizeof hello->job) != 0)
        return MC_ANSWER_OTHER_JOB;
    if (mc_handshake_sign_hello(self, challenge, &expected))
        return MC_ANSWER_LATER;
    return CRYPTO_memcmp(expected.mac, hello->mac, MC_DIGEST) == 0 ? MC_ANSWER_OK
                                                                   : MC_ANSWER_SECRET;
}

int mc_handshake_answer(const mc_self_t *self, int fd, const mc_challenge_t *challenge,
                        const mc_hello_t *hello, mc_answer_t *answer)
{
    answer->magic = MAGIC;
    const int failed = mc_handshake_sign_answer(self, challenge, hello, answer);
    return failed ? failed : mc_wire_send(fd, answer, sizeof *answer, 0);
}

/* The side that connected ---------------------------------------------------------------------- */

/* Is it none, or one to connect to? */
static bool is_endpoint(const mc_endpoint_t *e)
{
    return e->family == 0 || ((e->family == 4 || e->family == 6) && e->port > 0);
}

int mc_handshake_accepted(const mc_self_t *self, const mc_challenge_t *challenge,
                          const mc_hello_t *hello, mc_answer_t *answer)
{
    mc_answer_t expected = *answer;
    if (answer->magic != MAGIC)
        return EPROTO;
    if (answer->code == MC_ANSWER_OK &&
        (mc_handshake_sign_answer(self, challenge, hello, &expected) ||
         CRYPTO_memcmp(expected.mac, answer->mac, MC_DIGEST) != 0))
        answer->code = MC_ANSWER_SECRET;
    /* without a secret anyone can sign */
    if (answer->code == MC_ANSWER_OK && hello->kind == MC_HELLO_JOIN &&
        (answer->index < 1 || answer->index >= hello->size || answer->parent_rank < 0 ||
         answer->parent_rank >= hello->size || !is_endpoint(&answer->parent[0]) ||
         !is_endpoint(&answer->parent[1])))
        return EPROTO;
    return 0;
}

int mc_handshake_hello(const mc_self_t *self, const mc_challenge_t *challenge, mc_hello_t *hello)
{
    if (challenge->magic != MAGIC)
        return EPROTO;
    if (challenge->version != VERSION)
        return ENOEXEC;
    hello->magic = MAGIC;
    hello->version = VERSION;
    hello->rank = self->rank;
    hello->size = self->size;
    hello->generation = self->generation;
    memcpy(hello->job, self->job, sizeof hello->job);
    const int failed = draw(hello->nonce);
    return failed ? failed : mc_handshake_sign_hello(self, challenge, hello);
}

int mc_handshake(const mc_self_t *self, int fd, mc_hello_t *hello, double deadline,
                 mc_answer_t *answer)
{
    mc_challenge_t challenge;
    const double limit = mc_now() + MC_HANDSHAKE_SECONDS, end = deadline < limit ? deadline : limit;
    int failed = mc_wire_recv(fd, &challenge, sizeof challenge, end, -1);
    if (!failed && mc_handshake_is_stranger(self, fd))
        failed = EUSERS;
    if (!failed)
        failed = mc_handshake_hello(self, &challenge, hello);
    if (failed == ENOEXEC) {
        *answer = (mc_answer_t){.code = MC_ANSWER_VERSION};
        return 0;
    }
    if (!failed)
        failed = mc_wire_send(fd, hello, sizeof *hello, end);
    /* what sent a challenge is slow, not silent; who comes again might be taken for another process */
    if (!failed)
        failed = mc_wire_recv(fd, answer, sizeof *answer, deadline, -1);
    return failed ? failed : mc_handshake_accepted(self, &challenge, hello, answer);
}
