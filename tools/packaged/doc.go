// Package packaged has tests of the packages: two builds are the same bytes, and what their
// scripts do when they are installed, upgraded, downgraded, removed and purged. The programs
// dpkg and rpm are real; systemctl only notes what it is told, because a real systemd needs a
// virtual machine: make vm.
package packaged
