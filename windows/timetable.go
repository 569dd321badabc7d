package windows

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Timetable is the stored form of all windows, freezes and approvals: the texts as people wrote
// them, so that all readers decide alike, and the orders that people gave by hand.
type Timetable struct {
	Version   int64         `json:"version"` // 0: there never was a timetable
	Mark      string        `json:"-"`       // set by Redis; two of one Version differ
	Files     []File        `json:"files"`
	Attached  []File        `json:"attached,omitempty"`
	Freezes   []FreezeOrder `json:"freezes,omitempty"`
	Approvals []Approval    `json:"approvals,omitempty"`
	Known     Known         `json:"-"` // of its files; nil: nothing
}

// FreezeOrder is a freeze that a person ordered by hand.
type FreezeOrder struct {
	Name   string    `json:"name"`
	Level  string    `json:"level"` // as [Level.String]
	Of     string    `json:"of,omitempty"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until,omitzero"` // zero: until somebody lifts it
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// Freeze returns the order as a freeze, or the mistakes in it.
func (o FreezeOrder) Freeze() (Freeze, error) {
	f := Freeze{Name: o.Name, Reason: o.Reason, From: Wall(o.From.Unix())}
	errs := []error{checkName(o.Name)}
	level := slices.Index(levels[:], o.Level)
	switch {
	case level < 0:
		errs = append(errs, fmt.Errorf("level %q: want everyone, customer, site, group or host",
			clip(o.Level)))
	case Level(level) != Everyone:
		f.For = Scope{Level(level), o.Of}
		errs = append(errs, checkName(o.Of))
	}
	if !o.Until.IsZero() {
		f.Until = Wall(o.Until.Unix())
		if !o.Until.After(o.From) {
			errs = append(errs, fmt.Errorf("until %s is not after from %s",
				o.Until.Format(time.RFC3339), o.From.Format(time.RFC3339)))
		}
	}
	return f, errors.Join(errs...)
}

// Book reads a timetable that is kept. The error names all that is wrong.
func (t Timetable) Book() (*Book, error) {
	agreed, known, err := t.Known.parseKept(t.Files, t.Attached)
	errs := flatten(err)
	names := map[string]bool{}
	for _, f := range agreed.Freezes {
		names[f.Name] = true
	}
	for _, o := range t.Freezes {
		f, err := o.Freeze()
		if err == nil && names[f.Name] {
			err = fmt.Errorf("freeze %s is there already: names are unique", f.Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		names[f.Name] = true
		agreed.Freezes = append(agreed.Freezes, f)
	}
	agreed.Approvals = t.Approvals
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	b := NewBook(agreed)
	b.known = known
	return b, nil
}

// Change holds the differences between two timetables.
type Change struct {
	Added   []string `json:"added"`   // windows and freezes, as "window acme-sunday"
	Changed []string `json:"changed"` // entries whose times or effects have changed
	Removed []string `json:"removed"`
	Void    []string `json:"void"` // approvals that were valid before
	Voided  []Voided `json:"voided,omitempty"`
}

// Voided names the window of an approval that became void, and whether it still exists.
type Voided struct {
	Approval string `json:"approval"`
	Window   string `json:"window"`
	Gone     bool   `json:"gone"` // the window was removed; false: it was changed
}

// Any reports whether there is a change.
func (c Change) Any() bool { return len(c.Added)+len(c.Changed)+len(c.Removed)+len(c.Void) > 0 }

// Compare returns the changes from b to next.
func (b *Book) Compare(next *Book) Change {
	c := Change{Added: []string{}, Changed: []string{}, Removed: []string{}, Void: []string{}}
	was, is := b.hashes(), next.hashes()
	for name, hash := range is {
		switch before, ok := was[name]; {
		case !ok:
			c.Added = append(c.Added, name)
		case before != hash:
			c.Changed = append(c.Changed, name)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			c.Removed = append(c.Removed, name)
		}
	}
	before := b.Void()
	for _, a := range next.Void() {
		if !slices.ContainsFunc(before, func(v Approval) bool { return v.ID == a.ID }) {
			c.Void = append(c.Void, a.ID)
			_, there := next.Window(a.Window)
			c.Voided = append(c.Voided, Voided{Approval: a.ID, Window: a.Window, Gone: !there})
		}
	}
	for _, list := range [][]string{c.Added, c.Changed, c.Removed, c.Void} {
		slices.Sort(list)
	}
	return c
}

// hashes returns the hashes of all windows and freezes.
func (b *Book) hashes() map[string]string {
	all := map[string]string{}
	for _, w := range b.agreed.Windows {
		all["window "+w.Name] = w.Hash() + string(w.OnChange)
	}
	for _, f := range b.agreed.Freezes {
		all["freeze "+f.Name] = f.hash()
	}
	return all
}
