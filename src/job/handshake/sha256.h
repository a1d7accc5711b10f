/*
 * SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for greetings of some hundred bytes. In the library, as it is then the same
 * on all machines: ranks cannot disagree whether it was built with a cryptographic library.
 */
#ifndef MC_HANDSHAKE_SHA256_H
#define MC_HANDSHAKE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MC_SHA256_BYTES = 32, MC_SHA256_BLOCK = 64 };

typedef struct {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[MC_SHA256_BLOCK];
} mc_sha256_t;

void mc_sha256_init(mc_sha256_t *sha);
void mc_sha256_add(mc_sha256_t *sha, const void *data, size_t bytes);
void mc_sha256_end(mc_sha256_t *sha, unsigned char digest[MC_SHA256_BYTES]);

typedef struct {
    mc_sha256_t inner, outer;
} mc_hmac_t;

void mc_hmac_init(mc_hmac_t *hmac, const void *key, size_t bytes);
void mc_hmac_add(mc_hmac_t *hmac, const void *data, size_t bytes);
void mc_hmac_end(mc_hmac_t *hmac, unsigned char mac[MC_SHA256_BYTES]);
/* Compares in a time that does not depend on where they differ. */
bool mc_hmac_equal(const unsigned char a[MC_SHA256_BYTES], const unsigned char b[MC_SHA256_BYTES]);

#endif
