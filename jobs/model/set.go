package model

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"muster/jobs"
)

// Set is a sorted set as in Redis: members by score, equal scores by name.
type Set[K ~string] struct {
	scores  map[K]jobs.Micros
	sorted  []entry[K]
	Expires jobs.Micros // when Redis deletes it; 0: never
}

type entry[K ~string] struct {
	id K
	at jobs.Micros
}

func (a entry[K]) compare(b entry[K]) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
}

// Len returns the number of members.
func (s *Set[K]) Len() int {
	if s == nil {
		return 0
	}
	return len(s.sorted)
}

// Score returns the score of a member.
func (s *Set[K]) Score(id K) (jobs.Micros, bool) {
	if s == nil {
		return 0, false
	}
	at, ok := s.scores[id]
	return at, ok
}

// All yields the members in order.
func (s *Set[K]) All() iter.Seq2[K, jobs.Micros] {
	return func(yield func(K, jobs.Micros) bool) {
		if s == nil {
			return
		}
		for _, e := range s.sorted {
			if !yield(e.id, e.at) {
				return
			}
		}
	}
}

// First returns the member with the lowest score.
func (s *Set[K]) First() (id K, at jobs.Micros, ok bool) {
	if s.Len() == 0 {
		return "", 0, false
	}
	return s.sorted[0].id, s.sorted[0].at, true
}

// Until lists the members up to a score, at most n of them.
func (s *Set[K]) Until(at jobs.Micros, n int) []K {
	var out []K
	for id, score := range s.All() {
		if score > at || len(out) == n {
			break
		}
		out = append(out, id)
	}
	return out
}

// Put sets the score of a member.
func (s *Set[K]) Put(id K, at jobs.Micros) {
	s.cut(id)
	e := entry[K]{id, at}
	i, _ := slices.BinarySearchFunc(s.sorted, e, entry[K].compare)
	s.sorted = slices.Insert(s.sorted, i, e)
	if s.scores == nil {
		s.scores = map[K]jobs.Micros{}
	}
	s.scores[id] = at
}

// Remove removes a member, if it is there. An empty set does not expire.
func (s *Set[K]) Remove(id K) {
	if s.cut(id); len(s.sorted) == 0 {
		s.Expires = 0
	}
}

func (s *Set[K]) cut(id K) {
	at, ok := s.Score(id)
	if !ok {
		return
	}
	i, _ := slices.BinarySearchFunc(s.sorted, entry[K]{id, at}, entry[K].compare)
	s.sorted = slices.Delete(s.sorted, i, i+1)
	delete(s.scores, id)
}

func (s *Set[K]) clone() *Set[K] {
	return &Set[K]{sorted: slices.Clone(s.sorted), scores: maps.Clone(s.scores), Expires: s.Expires}
}

// sets holds sorted sets by name. As in Redis, an empty one does not exist.
type sets[N, K ~string] map[N]*Set[K]

// put sets a score and reports whether the member is new.
func (m sets[N, K]) put(name N, id K, at jobs.Micros) {
	if m[name] == nil {
		m[name] = &Set[K]{}
	}
	m[name].Put(id, at)
}

func (m sets[N, K]) putNew(name N, id K, at jobs.Micros) {
	if _, ok := m[name].Score(id); !ok {
		m.put(name, id, at)
	}
}

func (m sets[N, K]) remove(name N, id K) {
	if m[name] == nil {
		return
	}
	m[name].Remove(id)
	if m[name].Len() == 0 {
		delete(m, name)
	}
}

func (m sets[N, K]) expire(name N, at jobs.Micros) {
	if m[name] != nil {
		m[name].Expires = at
	}
}

func (m sets[N, K]) drop(now jobs.Micros) {
	for name, s := range m {
		if s.Expires != 0 && s.Expires <= now {
			delete(m, name)
		}
	}
}

func (m sets[N, K]) clone() sets[N, K] {
	c := make(sets[N, K], len(m))
	for name, s := range m {
		c[name] = s.clone()
	}
	return c
}

// sorted returns the keys of a map in order, because the order of a map is random.
func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
