// Package ansible reads inventories of Ansible as they are: INI, YAML, and the
// JSON that `ansible-inventory --list` and inventory scripts print, with the
// folders group_vars and host_vars beside them.
//
//	part := ansible.Read(ansible.Tree{Files: files}, ansible.Options{})
//	inv, err := fleet.Join(part)
//
// Groups, ranges, variables and their precedence are those of Ansible, which the
// tests ask. What becomes of a host:
//
//	ansible_host, _port, _user                 address, port, user (root, as no one else is known)
//	ansible_ssh_private_key_file               key
//	ProxyJump, -J in ansible_ssh_common_args   jump hosts
//	muster_customer, _zone, _group, _fence …   the fields of that name
//	the group web                              the label group.web=true
//	the variables that muster_labels names     labels
//
// Other variables are left alone: they may be secrets, and labels are shown.
// Nothing is run or looked up: a template or a vaulted value where a host's
// address or login should be is a mistake. It is pure, as fleet is.
//
// Floor 1: may import fleet and YAML.
package ansible
