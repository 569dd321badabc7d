package apply

import (
	"context"

	"muster/access"
	"muster/internal/manifest"
	"muster/server/calendar"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

// Times is the kind of windows and freezes, which are kept together in the timetable.
type Times struct {
	Calendar *calendar.Calendar
	Stock    *stock.Store
}

// Words returns the words for windows and freezes.
func (Times) Words() []string { return []string{manifest.Window, manifest.Freeze} }

// Look reads the timetable.
func (k Times) Look(ctx context.Context) (View, error) {
	table, book, err := k.Calendar.Read(ctx)
	return timesView{k.Calendar, table, book, k.Stock}, err
}

// May refuses a caller who is no admin of the whole house, as muster windows apply does. A window
// of one customer that opens nothing before somebody approves it is a proposal: who may order there
// may apply it.
func (k Times) May(ctx context.Context, e manifest.Entry) error {
	v, act := web.ViewOf(ctx), access.Act{Verb: access.Admin}
	w, is := e.Value.(windows.Window)
	proposal := is && w.Approval && Only(e, e.Customer) == nil
	if v.May(act) || proposal && v.MayCustomer(access.Act{Verb: access.Order}, e.Customer) {
		return nil
	}
	return v.RefuseHouse(act)
}

type timesView struct {
	calendar *calendar.Calendar
	table    windows.Timetable
	book     *windows.Book
	stock    *stock.Store
}

// Sees reports whether the caller sees the hosts of a window or a freeze.
func (v timesView) Sees(ctx context.Context, e manifest.Entry) (bool, error) {
	w := calendar.Windows{Calendar: v.calendar, Stock: v.stock}
	switch x := e.Value.(type) {
	case windows.Window:
		return w.Sees(ctx, x.For, x.Owner()), nil
	case windows.Freeze:
		return w.Sees(ctx, x.For, x.Owner()), nil
	}
	return false, nil
}

// Entries returns the windows and freezes that stand in files.
func (v timesView) Entries() []manifest.Entry { return manifest.OfTimetable(v.table, v.book) }

// Again returns false: what is in Redis is in force, or nothing is.
func (timesView) Again() bool { return false }

// Prepare returns the change of the timetable.
func (v timesView) Prepare(ctx context.Context, a Ask, steps []manifest.Step) (Ready, error) {
	var what windows.Application
	for _, kind := range []string{manifest.Window, manifest.Freeze} {
		set, gone := named(steps, kind)
		files := a.Set.Files(kind, func(name string) bool { _, is := set[name]; return is })
		what.Files = append(what.Files, files...)
		for _, name := range gone {
			what.Remove = append(what.Remove, kind+" "+name)
		}
	}
	what.Attached = attachedOf(what.Files, a.Attached)
	p, err := v.calendar.Plan(ctx, v.table, v.book, what)
	if err != nil {
		return Ready{}, err
	}
	change, err := v.calendar.Prepare(p, a.Giver)
	return Ready{Change: change, Notes: p.Changed.Notes, Void: p.Changed.Void}, err
}

// attachedOf returns the attached files that some files name.
func attachedOf(files, attached []windows.File) []windows.File {
	named := map[string]bool{}
	for _, f := range files {
		for _, ics := range windows.Attachments(f) {
			named[windows.Attached(f.Name, ics)], named[ics] = true, true
		}
	}
	var out []windows.File
	for _, f := range attached {
		if named[f.Name] {
			out = append(out, f)
		}
	}
	return out
}

// Write returns the windows and freezes as documents.
func (v timesView) Write() (texts []manifest.Text, beside []string, err error) {
	for _, o := range v.table.Freezes {
		beside = append(beside, "freeze "+o.Name+" was ordered by hand, by "+o.By+": it is no entry")
	}
	texts, err = manifest.WriteTimetable(v.table)
	return texts, beside, err
}
