package warden

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"muster/internal/wording"
	"muster/jobs"
	"muster/trust"
	"muster/windows"
)

// This file keeps a worker from a timetable (windows, freezes, approvals) that no server has
// signed, or that was replaced.

// Timetable reads what is agreed about times, and tells people, without any check.
type Timetable interface {
	Agreed(ctx context.Context) (jobs.Agreed, error)
	Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error)
	Estimate(ctx context.Context, field string) (jobs.Estimate, bool, error)
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

// Proofs reads parts of the timetable as they are, with the statement of servers about it.
type Proofs interface {
	Kept(ctx context.Context, ask trust.TimesAsked) (trust.KeptTimes, error)
}

// Memory keeps, for all workers of a node, since when the last timetable that one of them has
// believed is in force.
type Memory interface {
	Since() (time.Time, error)
	Remember(since time.Time) error
}

const (
	// DefaultAge is the usual longest time since a server said that the timetable is in force.
	DefaultAge = 15 * time.Minute

	// stateAgain is the age of a statement from which a worker looks for a newer one: servers say so
	// each minute.
	stateAgain = 2 * time.Minute

	// lookAgain is the least time between two such looks.
	lookAgain = 5 * time.Second

	// The times between two lines of the log, and between two events, about a doubt.
	logEvery, tellEvery = time.Minute, 10 * time.Minute
)

// Times is the timetable, as far as servers have signed it. It has the methods by which a worker
// reads one. Its caller calls one of them at a time.
type Times struct {
	Timetable
	proofs Proofs
	warden *Warden
	zone   string
	age    time.Duration
	memory Memory

	rules  *trust.Rules // by which the statement was read
	stated *trust.Times // the last statement that holds; nil: none
	looked time.Time    // when it was read
	lists  map[int]map[string]string
	logged time.Time // when a doubt was logged last
	told   time.Time // when people were told
}

// Times returns a timetable that servers must have signed, at most age ago, if the rules of the
// node ask for that.
func (w *Warden) Times(t Timetable, p Proofs, o TimesOptions) *Times {
	return &Times{Timetable: t, proofs: p, warden: w, zone: o.Zone, age: o.Age, memory: o.Memory}
}

// TimesOptions say how a worker checks the timetable.
type TimesOptions struct {
	Zone   string // in which people are told
	Age    time.Duration
	Memory Memory // nil: there is none
}

// Agreed returns the version in force. An error says that Redis has not answered, or that the
// timetable must not be believed.
func (t *Times) Agreed(ctx context.Context) (jobs.Agreed, error) {
	a, err := t.Timetable.Agreed(ctx)
	if err != nil {
		return a, err
	}
	asked, err := t.asked()
	if err != nil || !asked {
		return a, err
	}
	now := t.now(a.Now.Time())
	stale := t.stated == nil || t.mark() != a.Mark || now.Sub(t.stated.At) > stateAgain ||
		t.since().After(t.stated.Since)
	if stale && (t.stated == nil || t.mark() != a.Mark || now.Sub(t.looked).Abs() >= lookAgain) {
		if err := t.look(ctx, now); err != nil {
			if isAway(err) {
				return a, err
			}
			return a, t.doubt(ctx, err)
		}
	}
	doubt := t.holds(a.Mark, now)
	return a, t.doubt(ctx, doubt)
}

// holds returns an error unless the statement names a mark, is young enough and the last one.
func (t *Times) holds(mark string, now time.Time) error {
	if mark != t.mark() {
		return errors.New("it changes faster than it can be read")
	}
	if err := t.stated.Newest(t.since()); err != nil {
		return err
	}
	return t.stated.Fresh(now, t.age)
}

// now returns the later time of two clocks: a slow one must make no statement young.
func (t *Times) now(redis time.Time) time.Time {
	if own := t.warden.now(); own.After(redis) {
		return own
	}
	return redis
}

// asked reports whether the rules ask for signatures.
func (t *Times) asked() (bool, error) {
	rules, err := t.warden.rules()
	if err != nil {
		return false, fmt.Errorf("this node cannot read whom it trusts: %w", err)
	}
	if rules != t.rules {
		t.rules, t.stated, t.lists = rules, nil, nil
	}
	return rules != nil && rules.Policy.Judge(nil, errors.New(""), trust.Deed{}).Mode != trust.Off, nil
}

func (t *Times) mark() string { return markOf(t.stated) }

// markOf returns the mark of the timetable of a statement.
func markOf(s *trust.Times) string {
	k := trust.KeptTimes{Stamp: s.Stamp}
	if s.Version > 0 {
		k.Version = strconv.FormatInt(s.Version, 10)
	}
	return k.Mark()
}

// look reads the statement. An error that is not away says why it is not believed.
func (t *Times) look(ctx context.Context, now time.Time) error {
	k, err := t.proofs.Kept(ctx, trust.TimesAsked{})
	if err != nil {
		return away{err}
	}
	t.looked = now
	return t.read(k, now)
}

// read reads the statement of a timetable.
func (t *Times) read(k trust.KeptTimes, now time.Time) error {
	s, err := trust.ReadTimes(k.Statement, k.Signature, t.rules.Keys.Installation(),
		t.warden.signers(t.rules))
	if err == nil {
		err = s.Of(k.Version, k.Stamp)
	}
	if err != nil {
		t.stated = nil
		return err
	}
	if t.stated == nil || !t.stated.Since.Equal(s.Since) || t.mark() != markOf(s) {
		t.lists = map[int]map[string]string{}
	}
	t.stated = s
	if s.Newest(t.since()) == nil && s.Fresh(now, t.age) == nil {
		t.remember(s.Since)
	}
	return nil
}

// since returns the time since which the last timetable is in force that this node knows of.
func (t *Times) since() time.Time {
	last := t.warden.timesSeen()
	if t.memory == nil {
		return last
	}
	kept, err := t.memory.Since()
	if err != nil {
		t.warden.log.Warn("this node does not know which timetable it believed last", "error", err)
	}
	if kept.After(last) {
		return kept
	}
	return last
}

func (t *Times) remember(since time.Time) {
	t.warden.sawTimes(since)
	if t.memory == nil {
		return
	}
	if err := t.memory.Remember(since); err != nil {
		t.warden.log.Warn("this node cannot keep which timetable it believes", "error", err)
	}
}

// excerptTries bounds the readings of a timetable that changes meanwhile.
const excerptTries = 3

// Excerpts returns the agreements for some scopes, as servers have signed them.
func (t *Times) Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error) {
	asked, err := t.asked()
	if err != nil {
		return jobs.Excerpts{}, err
	}
	if !asked {
		return t.Timetable.Excerpts(ctx, scopes)
	}
	for range excerptTries {
		if t.stated == nil {
			now := t.warden.now()
			err := t.look(ctx, now)
			if isAway(err) {
				return jobs.Excerpts{}, err
			}
			if err == nil {
				err = t.holds(t.mark(), now)
			}
			if err != nil {
				return t.warned(ctx, scopes, err)
			}
		}
		x, same, err := t.proven(ctx, scopes)
		switch {
		case isAway(err):
			return x, err
		case err != nil:
			return t.warned(ctx, scopes, err)
		case same:
			return x, nil
		}
		t.stated = nil
	}
	return jobs.Excerpts{}, errors.New("it changes faster than it can be read")
}

// warned returns the excerpts as they are, if the rules only warn.
func (t *Times) warned(ctx context.Context, scopes []windows.Scope, why error) (jobs.Excerpts,
	error) {
	if err := t.doubt(ctx, why); err != nil {
		return jobs.Excerpts{}, err
	}
	return t.Timetable.Excerpts(ctx, scopes)
}

// proven reads excerpts, and compares them with the statement. It returns false if Redis has
// another timetable by now.
func (t *Times) proven(ctx context.Context, scopes []windows.Scope) (x jobs.Excerpts, same bool,
	err error) {
	ask := trust.TimesAsked{}
	for _, s := range scopes {
		ask.Scopes = append(ask.Scopes, s.String())
		n, is := t.stated.ShareOf(s.String())
		ask.Table = ask.Table || !is
		ask.Shares = append(ask.Shares, n)
	}
	k, err := t.proofs.Kept(ctx, ask)
	if err != nil {
		return x, false, away{err}
	}
	if k.Mark() != t.mark() {
		return x, false, nil
	}
	x = jobs.Excerpts{Version: t.stated.Version, Mark: t.mark()}
	if !ask.Table && (k.Version == "" || k.ExcerptsOf == k.Version) {
		for i, scope := range ask.Scopes {
			if err := t.listed(k, scope, ask.Shares[i], i); err != nil {
				return x, true, err
			}
			part, err := excerptOf(k.Excerpts[i])
			if err != nil {
				ask.Table = true // a later muster has made it
				break
			}
			x.Parts = append(x.Parts, part)
		}
		if !ask.Table {
			return x, true, nil
		}
	}
	return t.whole(ctx)
}

// listed returns an error unless the n-th excerpt is that of a scope.
func (t *Times) listed(k trust.KeptTimes, scope string, share, n int) error {
	list, read := t.lists[share]
	if !read {
		var err error
		if list, err = t.stated.Share(share, k.Shares[n]); err != nil {
			return err
		}
		t.lists[share] = list
	}
	return trust.ExcerptHolds(list, scope, k.Excerpts[n])
}

func excerptOf(text []byte) (*windows.Excerpt, error) {
	if text == nil {
		return &windows.Excerpt{}, nil
	}
	return windows.ReadExcerpt(text)
}

// whole reads the whole timetable: it has no excerpts, or none that this muster can read.
func (t *Times) whole(ctx context.Context) (x jobs.Excerpts, same bool, err error) {
	k, err := t.proofs.Kept(ctx, trust.TimesAsked{Table: true})
	if err != nil {
		return x, false, away{err}
	}
	if k.Mark() != t.mark() {
		return x, false, nil
	}
	if err := t.stated.Whole(k.Table); err != nil {
		return x, true, err
	}
	table, err := k.Timetable()
	if err != nil {
		return x, true, err
	}
	return jobs.Excerpts{Version: t.stated.Version, Mark: t.mark(), Table: &table}, true, nil
}

// doubt tells people that the timetable is not believed, and returns that if the rules require
// signatures.
func (t *Times) doubt(ctx context.Context, why error) error {
	if why == nil {
		return nil
	}
	mode := t.rules.Policy.Judge(nil, why, trust.Deed{}).Mode
	text, now := wording.ErrorLine(why), t.warden.now()
	if now.Sub(t.logged).Abs() > logEvery {
		t.logged = now
		t.warden.log.Error("the timetable in Redis is not believed", "mode", string(mode), "why", text)
	}
	if now.Sub(t.told).Abs() > tellEvery {
		err := t.Alert(ctx, t.zone, jobs.Alert{Event: "times-doubted", Object: "windows",
			Detail: map[string]any{"mode": string(mode), "note": text}})
		if err != nil {
			t.warden.log.Warn("nobody could be told that the timetable is not believed", "error", err)
		} else {
			t.told = now
		}
	}
	if mode != trust.Require {
		return nil
	}
	return fmt.Errorf("it is not believed: %w", why)
}
