package fleet

import "fmt"

// GroupPrefix begins the labels that stand for groups of Ansible: a host in the group
// web has the label group.web=true.
const GroupPrefix = "group."

// BecomeLabel is the label of hosts on which Ansible would become another user in a way that
// muster has not, with su say; its value is that user. Tasks on such hosts are refused.
const BecomeLabel = "ansible.become"

const groupValue = "true"

// ansibleGroup is a group of Ansible in a host set, such as group.web. There it stands
// without braces, because an inventory of Ansible is read by people who name groups
// wherever they name hosts.
type ansibleGroup string

func (g ansibleGroup) cost() int { return 0 }

// mark adds the hosts of the group. A host may have such a name too, and nobody can
// know which one was meant when there are both.
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
