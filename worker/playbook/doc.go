// Package playbook describes the run of a playbook of Ansible for one host, and reads its events.
//
// [Play.Files] are the files of a private folder: an inventory of that host alone, the way to it
// for OpenSSH with the host keys of the inventory, the variables, and a plugin that reports events.
// All values are data: Ansible reads texts as templates, which run programs on the node, unless
// they are marked as unsafe, and these are. [Teller] reads the events, which repeat words of the
// host, and [Sum.Ended] decides by them how the step ended.
//
// It is pure. Floor 2: may import fleet, fleet/remote, internal/seal, internal/wording.
package playbook
