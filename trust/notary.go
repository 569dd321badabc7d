package trust

import (
	"sync"
	"time"

	"muster/internal/serverkey"
)

// A Notary signs statements about timetables for a server, and examines those that Redis has. It
// remembers the last one that it has believed. Without a key it does nothing, and so does nil.
type Notary struct {
	keys func() (serverkey.Keys, error)
	now  func() time.Time

	mu   sync.Mutex
	last Times // without its hashes
}

// NewNotary returns a notary with the key of servers.
func NewNotary(keys func() (serverkey.Keys, error), now func() time.Time) *Notary {
	return &Notary{keys: keys, now: now}
}

// Signs reports whether there is a key.
func (n *Notary) Signs() (bool, error) {
	k, err := n.key()
	return !k.None(), err
}

func (n *Notary) key() (serverkey.Keys, error) {
	if n == nil {
		return serverkey.Keys{}, nil
	}
	return n.keys()
}

// Since returns the time since which the last timetable that was believed is in force; zero: none.
func (n *Notary) Since() time.Time {
	if n == nil {
		return time.Time{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last.Since
}

// Never reports whether the notary remembers no timetable, or that there is none.
func (n *Notary) Never() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last.Version == 0
}

// Remember notes that a timetable is in force.
func (n *Notary) Remember(t Times) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if t.Since.After(n.last.Since) {
		n.last = Times{Version: t.Version, Since: t.Since}
	}
}

// Believed returns the statement about a timetable, whenever that was in force, or why no server
// has signed it. Both are nil without a key.
func (n *Notary) Believed(k KeptTimes) (*Times, error) {
	key, doubt := n.key()
	if doubt != nil || key.None() {
		return nil, doubt
	}
	by, doubt := ServersOf(key, n.now())
	if doubt != nil {
		return nil, doubt
	}
	t, doubt := ReadTimes(k.Statement, k.Signature, key.Installation(), by)
	if doubt != nil {
		return nil, doubt
	}
	if doubt = t.Of(k.Version, k.Stamp); doubt == nil {
		doubt = t.Whole(k.Table)
	}
	if doubt != nil {
		return nil, doubt
	}
	return t, nil
}

// Examine is Believed for the timetable in force: it does not believe one that was replaced, as far
// as the notary remembers.
func (n *Notary) Examine(k KeptTimes) (*Times, error) {
	t, doubt := n.Believed(k)
	if t == nil || doubt != nil {
		return nil, doubt
	}
	if doubt = t.Newest(n.Since()); doubt != nil {
		return nil, doubt
	}
	n.Remember(*t)
	return t, nil
}

// Said reports whether a server said within a time that the timetable is in force, as far as its
// statement proves that.
func (n *Notary) Said(k KeptTimes, within time.Duration) bool {
	key, err := n.key()
	if err != nil || key.None() {
		return false
	}
	by, err := ServersOf(key, n.now())
	if err != nil {
		return false
	}
	t, err := ReadTimes(k.Statement, k.Signature, key.Installation(), by)
	return err == nil && t.Of(k.Version, k.Stamp) == nil && t.Newest(n.Since()) == nil &&
		n.now().Sub(t.At).Abs() < within
}

// Next returns the statement about a timetable that comes into force now, without its hashes.
func (n *Notary) Next(version int64, stamp string) Times {
	if n == nil {
		return Times{}
	}
	now := n.now()
	return Times{Version: version, Stamp: stamp, Since: (&Times{Since: n.Since()}).After(now), At: now}
}

// Sign signs a statement; empty: there is no key.
func (n *Notary) Sign(t Times) (statement []byte, signature string, err error) {
	key, err := n.key()
	if err != nil || key.None() {
		return nil, "", err
	}
	return t.Sign(key)
}

// Anew returns a statement that is said again, now.
func (n *Notary) Anew(t Times) Times {
	t.At = n.now().UTC()
	return t
}
