// Package ansible reads unchanged inventories of Ansible: INI, YAML, and the JSON
// that `ansible-inventory --list` and inventory scripts print, with the folders
// group_vars and host_vars beside them.
//
//	part := ansible.Read(ansible.Tree{Files: files}, ansible.Options{})
//	inv, err := fleet.Join(part)
//
// Groups, ranges, variables and their precedence follow Ansible; the tests compare
// with it. The reader turns into fields and labels of a host:
//
//	ansible_host, _port, _user                 address, port, user (otherwise root)
//	ansible_ssh_private_key_file               key
//	ProxyJump, -J in ansible_ssh_common_args   jump hosts
//	muster_customer, _zone, _group, _fence …   the fields of that name
//	the group web                              the label group.web=true
//	the variables that muster_labels names     labels
//
// It ignores other variables, because they may be secrets and labels are public.
// It runs no program and resolves no name, so a template or an encrypted value is a
// mistake where a host's address or login belongs. It is pure, as fleet is.
//
// Floor 1: may import fleet and YAML.
package ansible
