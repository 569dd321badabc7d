// Package seal keeps secret arguments from everybody but servers and workers: what lies in
// Redis, in a backup of it or on the way there is of no use without the key, which is a file
// on servers and nodes (design §9).
//
// A text is sealed with XChaCha20-Poly1305 for one argument of one task: sealed for another
// one it cannot be opened. The nonce is made of key, place and text, so that the same submit,
// handed in twice, is the same bytes; who has them learns that two are equal only of the same
// argument of the same task, which has one. The length shows in steps of 64 bytes.
//
// It is pure: keys come as bytes, and nothing is left to chance.
//
// Floor 0: may import the standard library and golang.org/x/crypto.
package seal
