/* SHA-256 and HMAC by the examples of FIPS 180-4 (NIST) and RFC 4231. */
#include "job/handshake/sha256.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_hex(const unsigned char digest[MC_SHA256_BYTES], const char *hex)
{
    char text[2 * MC_SHA256_BYTES + 1];
    for (int i = 0; i < MC_SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    cr_expect_str_eq(text, hex);
}

static void expect_digest(const char *message, size_t bytes, const char *hex)
{
    unsigned char digest[MC_SHA256_BYTES];
    mc_sha256_t sha;
    mc_sha256_init(&sha);
    mc_sha256_add(&sha, message, bytes);
    mc_sha256_end(&sha, digest);
    expect_hex(digest, hex);
}

Test(sha256, examples)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const char long_[] = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoij"
                                "klmnopjklmnopqklmnopqrlmno"
                                "pqrsmnopqrstnopqrstu";
    expect_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest(two, strlen(two),
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect_digest(long_, strlen(long_),
                  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    char *const million = malloc(1000000);
    cr_assert(million);
    memset(million, 'a', 1000000);
    expect_digest(million, 1000000,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* Of all lengths around a block, added in pieces of all sizes. */
Test(sha256, pieces_make_no_difference)
{
    char data[200];
    unsigned char whole[MC_SHA256_BYTES], pieces[MC_SHA256_BYTES];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    for (size_t n = 0; n < sizeof data; n++)
        for (size_t piece = 1; piece < 70; piece += 13) {
            mc_sha256_t a, b;
            mc_sha256_init(&a);
            mc_sha256_add(&a, data, n);
            mc_sha256_end(&a, whole);
            mc_sha256_init(&b);
            for (size_t at = 0; at < n; at += piece)
                mc_sha256_add(&b, data + at, n - at < piece ? n - at : piece);
            mc_sha256_end(&b, pieces);
            cr_assert_arr_eq(whole, pieces, sizeof whole);
        }
}

static void expect_mac(const void *key, size_t key_bytes, const void *data, size_t bytes,
                       const char *hex)
{
    unsigned char mac[MC_SHA256_BYTES];
    mc_hmac_t hmac;
    mc_hmac_init(&hmac, key, key_bytes);
    mc_hmac_add(&hmac, data, bytes);
    mc_hmac_end(&hmac, mac);
    expect_hex(mac, hex);
}

/* RFC 4231, cases 1, 2, 3, 6 and 7; the last two have keys longer than a block. */
Test(hmac, examples)
{
    unsigned char key[131], data[50];
    memset(key, 0x0b, 20);
    expect_mac(key, 20, "Hi There", 8,
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_mac("Jefe", 4, "what do ya want for nothing?", 28,
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    expect_mac(key, 20, data, sizeof data,
               "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    expect_mac(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    static const char last[] =
        "This is a test using a larger than block-size key and a larger than "
        "block-size data. The key needs to be hashed before being used by the "
        "HMAC algorithm.";
    expect_mac(key, sizeof key, last, strlen(last),
               "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

Test(hmac, compares_all_bytes)
{
    unsigned char a[MC_SHA256_BYTES] = {0}, b[MC_SHA256_BYTES] = {0};
    cr_expect(mc_hmac_equal(a, b));
    for (int i = 0; i < MC_SHA256_BYTES; i++) {
        b[i] = 1;
        cr_expect(!mc_hmac_equal(a, b));
        b[i] = 0;
    }
}
