// Package sources reads the inventory from where the configuration says, and tells
// when it may have changed.
//
// A source is a file, a folder, a program or a URL:
//
//	/etc/muster/fleet.yaml        a file: ours, or Ansible's INI, YAML or JSON
//	/etc/ansible/inventory        a folder, whose files are one inventory of Ansible
//	/etc/muster/cmdb.py           a program, run with --list
//	https://cmdb/x#token=/path    a URL, asked with the token in that file
//
// Files are looked at whenever somebody asks, programs and URLs from time to time.
// It logs nothing and starts nothing that outlives a call.
//
// Floor 3: may import fleet, fleet/ansible, fleet/remote and internal/proc. It is
// the only package that reads inventories from anywhere.
package sources
