package fleet

import "fmt"

// GroupPrefix begins each label that represents a group of Ansible: a host in the group
// web has the label group.web=true.
const GroupPrefix = "group."

// BecomeLabel marks hosts on which Ansible would become another user by a method that muster
// does not support, such as su. Its value is that user. Tasks on such hosts are refused.
const BecomeLabel = "ansible.become"

const groupValue = "true"

// ansibleGroup is an operand that names a group of Ansible, such as group.web. It needs no
// braces, because people who write inventories of Ansible use a group wherever they could
// use a host.
type ansibleGroup string

func (g ansibleGroup) cost() int { return 0 }

// mark adds the hosts of the group. It returns an error if a host has the same name,
// because nobody can know whether the host or the group was meant.
func (g ansibleGroup) mark(s *search, into hostSet) error {
	index, label := s.inventory.labelIndex(), string(g)
	of := index.byKey[label]
	host, isHost := s.inventory.index[label]
	switch {
	case of != nil && isHost:
		return fmt.Errorf("%q is a host and a group: write {name=%s} or {%s=%s}", label, label, label,
			groupValue)
	case isHost:
		into.add(host)
	case of != nil && len(of.hosts[groupValue]) > 0:
		of.mark([]string{groupValue}, into)
	default:
		s.lost.add(label)
	}
	return nil
}
