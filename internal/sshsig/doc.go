// Package sshsig makes and checks signatures in the format of OpenSSH, as `ssh-keygen -Y sign` and
// `ssh-keygen -Y verify` do, and reads the file allowed_signers, which says whose key a key is.
//
// A signature is for a namespace: a text that says for which purpose it was made, so that nobody
// can use it for another one. PROTOCOL.sshsig of OpenSSH describes the format, ssh-keygen(1) the
// file. Where this package differs, it refuses more: certificates, DSA, short keys of RSA, security
// keys that nobody touched, passkeys that did not check who their user is, and patterns in place of
// names.
//
// Floor 1: may import internal/wording.
package sshsig
