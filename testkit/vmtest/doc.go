// Package vmtest boots a small virtual machine with a kernel, a systemd and an sshd of its
// own, for tests that hosts made of namespaces (package hosttest) cannot serve. Its processor is
// emulated, so it needs no rights, and no /dev/kvm; a boot takes half a minute or more.
//
// Tests that need one run only on request: `make vm` installs qemu and mmdebstrap and passes
// -vm. The disk is made once by image.sh, as root, and kept in .vm/ of the tree, in a
// folder named after that script. A machine's writes to it are lost when the machine ends.
package vmtest
