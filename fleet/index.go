package fleet

import (
	"slices"
	"strings"

	"muster/internal/wording"
)

// labelIndex finds hosts by their labels and lists all labels. Fields of hosts count as
// labels. It is built once, when the inventory no longer changes.
type labelIndex struct {
	names  []string // of all hosts, sorted
	keys   []string // sorted
	values map[string][]string
	byKey  map[string]*keyIndex // every label except the name
}

// nameLabel is the label for the name of a host. It has no keyIndex, because each value
// belongs to one host and the sorted names suffice for a search.
const nameLabel = "name"

// keyIndex holds, for one label, the hosts that have it, and those with each value.
type keyIndex struct {
	has   hostSet
	hosts map[string][]int32 // value → indexes of the hosts
}

// labelIndex builds the index at its first use, because many callers only read the
// inventory and never need it.
func (v *Inventory) labelIndex() *labelIndex {
	v.once.Do(func() { v.labels = newLabelIndex(v) })
	return v.labels
}

func newLabelIndex(v *Inventory) *labelIndex {
	x := &labelIndex{names: make([]string, len(v.hosts)), byKey: map[string]*keyIndex{}}
	for i := range v.hosts {
		h := &v.hosts[i]
		x.names[i] = h.Name
		for _, key := range builtinLabels()[1:] {
			if value, ok := (*hostLabels)(h).Lookup(key); ok {
				x.add(key, value, i)
			}
		}
		more := v.extra[h.Name]
		for key, value := range h.Labels {
			if _, replaced := more[key]; !replaced {
				x.add(key, value, i)
			}
		}
		for key, value := range more {
			x.add(key, value, i)
		}
	}
	x.values = make(map[string][]string, 1+len(x.byKey))
	for key, of := range x.byKey {
		x.values[key] = sortedKeys(of.hosts)
	}
	x.values[nameLabel] = x.names
	x.keys = sortedKeys(x.values)
	return x
}

func (x *labelIndex) add(key, value string, host int) {
	of := x.byKey[key]
	if of == nil {
		of = &keyIndex{has: newHostSet(len(x.names)), hosts: map[string][]int32{}}
		x.byKey[key] = of
	}
	of.has.add(host)
	of.hosts[value] = append(of.hosts[value], int32(host))
}

// mark adds the hosts that have one of the values.
func (k *keyIndex) mark(values []string, into hostSet) {
	if k == nil {
		return
	}
	for _, value := range values {
		for _, i := range k.hosts[value] {
			into.add(int(i))
		}
	}
}

// having returns the hosts that have a label, or nil if nobody has it.
func (x *labelIndex) having(key string) hostSet {
	if key == nameLabel {
		return x.everybody()
	}
	if of := x.byKey[key]; of != nil {
		return of.has
	}
	return nil
}

// named returns an index of the label name for just these values.
func (x *labelIndex) named(values []string) *keyIndex {
	k := &keyIndex{has: x.everybody(), hosts: map[string][]int32{}}
	for _, value := range values {
		if i, found := slices.BinarySearch(x.names, value); found {
			k.hosts[value] = []int32{int32(i)}
		}
	}
	return k
}

func (x *labelIndex) everybody() hostSet {
	all := newHostSet(len(x.names))
	for i := range x.names {
		all.add(i)
	}
	return all
}

// otherwisePadded finds hosts whose numbers equal those of the words but have more or fewer
// leading zeros: fw0001 for fw1. rest lists the words without such a host.
func (x *labelIndex) otherwisePadded(words []string) (hosts, rest []string) {
	named := map[string][]string{} // name without zeros in front → hosts
	for _, name := range x.names {
		short := unpadded(name)
		named[short] = append(named[short], name)
	}
	for _, word := range words {
		found := named[unpadded(word)]
		if hosts = append(hosts, found...); len(found) == 0 {
			rest = append(rest, word)
		}
	}
	return hosts, rest
}

// unpadded returns a name without the leading zeros of its numbers.
func unpadded(name string) string {
	var b strings.Builder
	for i := range len(name) {
		another := i+1 < len(name) && '0' <= name[i+1] && name[i+1] <= '9'
		if name[i] == '0' && another && !endsInDigit(b.String()) {
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// hintsFor returns corrections for a word that is not a host name but was used as one: labels
// or values with that name, similar host names, or else similar values and labels.
func (x *labelIndex) hintsFor(word string) []string {
	var hints []string
	for _, key := range x.keys {
		switch {
		case key == GroupPrefix+word:
			hints = append(hints, key)
		case key == word:
			hints = append(hints, "{"+key+"}")
		case key != nameLabel && x.byKey[key].hosts[word] != nil:
			hints = append(hints, key+"="+word)
		}
	}
	exact := len(hints) > 0
	hints = append(hints, wording.Nearby(word, x.names, 2)...)
	if exact || len(hints) > 0 {
		return hints
	}
	for _, key := range x.keys {
		if key == nameLabel {
			continue
		}
		for _, value := range wording.Nearby(word, x.values[key], 1) {
			hints = append(hints, key+"="+value)
		}
	}
	for _, key := range wording.Nearby(word, x.keys, 1) {
		switch {
		case strings.HasPrefix(key, GroupPrefix):
			hints = append(hints, key)
		case !slices.Contains(builtinLabels(), key):
			hints = append(hints, "{"+key+"}")
		}
	}
	return hints
}
