#include "job/handshake/sha256.h"

#include <string.h>

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t word_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void expand(const unsigned char *block, uint32_t w[64])
{
    for (int i = 0; i < 16; i++)
        w[i] = word_at(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        const uint32_t s0 = rotated(a, 7) ^ rotated(a, 18) ^ a >> 3;
        const uint32_t s1 = rotated(b, 17) ^ rotated(b, 19) ^ b >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], v[8];
    expand(block, w);
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t s1 = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
        const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        const uint32_t t1 = v[7] + s1 + choice + round_constant[i] + w[i];
        const uint32_t s0 = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
        const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void mc_sha256_init(mc_sha256_t *sha)
{
    *sha = (mc_sha256_t){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void mc_sha256_add(mc_sha256_t *sha, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    while (bytes > 0) {
        const size_t used = sha->bytes % MC_SHA256_BLOCK, room = MC_SHA256_BLOCK - used;
        const size_t n = bytes < room ? bytes : room;
        memcpy(sha->block + used, at, n);
        sha->bytes += n;
        at += n;
        bytes -= n;
        if (sha->bytes % MC_SHA256_BLOCK == 0)
            compress(sha->state, sha->block);
    }
}

void mc_sha256_end(mc_sha256_t *sha, unsigned char digest[MC_SHA256_BYTES])
{
    static const unsigned char padding[MC_SHA256_BLOCK] = {0x80};
    unsigned char bits[8];
    for (int i = 0; i < 8; i++)
        bits[i] = (unsigned char)(sha->bytes * 8 >> (56 - 8 * i));
    const size_t used = sha->bytes % MC_SHA256_BLOCK;
    mc_sha256_add(sha, padding, (used < 56 ? 56 : 120) - used);
    mc_sha256_add(sha, bits, sizeof bits);
    for (int i = 0; i < MC_SHA256_BYTES; i++)
        digest[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void mc_hmac_init(mc_hmac_t *hmac, const void *key, size_t bytes)
{
    unsigned char block[MC_SHA256_BLOCK] = {0};
    if (bytes > sizeof block) {
        mc_sha256_init(&hmac->inner);
        mc_sha256_add(&hmac->inner, key, bytes);
        mc_sha256_end(&hmac->inner, block);
    } else if (bytes > 0) {
        memcpy(block, key, bytes);
    }
    mc_sha256_init(&hmac->inner);
    mc_sha256_init(&hmac->outer);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    mc_sha256_add(&hmac->inner, block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    mc_sha256_add(&hmac->outer, block, sizeof block);
}

void mc_hmac_add(mc_hmac_t *hmac, const void *data, size_t bytes)
{
    mc_sha256_add(&hmac->inner, data, bytes);
}

void mc_hmac_end(mc_hmac_t *hmac, unsigned char mac[MC_SHA256_BYTES])
{
    mc_sha256_end(&hmac->inner, mac);
    mc_sha256_add(&hmac->outer, mac, MC_SHA256_BYTES);
    mc_sha256_end(&hmac->outer, mac);
}

bool mc_hmac_equal(const unsigned char a[MC_SHA256_BYTES], const unsigned char b[MC_SHA256_BYTES])
{
    unsigned char differ = 0;
    for (int i = 0; i < MC_SHA256_BYTES; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}
