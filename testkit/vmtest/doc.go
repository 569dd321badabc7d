// Package vmtest boots a small virtual machine with a kernel, a systemd and an sshd of its
// own: for what hosts made of namespaces (package hosttest) cannot have. Its processor is
// emulated, so it needs no rights, and no /dev/kvm; a boot takes half a minute or more.
//
// A test that wants one is asked for: `make vm` installs qemu and mmdebstrap and passes
// -vm. The disk is made once by image.sh, as root, and kept in .vm/ of the tree, in a
// folder named after that script. What a machine writes to it is gone with the machine.
package vmtest
