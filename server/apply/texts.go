package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster/access"
	"muster/internal/manifest"
	kept "muster/jobs/queue/entries"
	"muster/notify"
	"muster/scripts"
	"muster/server/entries"
	"muster/server/fault"
	"muster/server/web"
	"muster/triggers"
)

// Texts are the kinds whose entries are kept as texts, all of them in one version that servers
// follow. Its functions return what stands in files of this server.
type Texts struct {
	Follower *entries.Follower
	Runbooks func() *scripts.Catalog
	InForce  func() *scripts.Catalog // with the applied ones
	Triggers func() *triggers.Set
	Notify   func() *notify.Rules
}

// Words returns the words of these kinds.
func (Texts) Words() []string {
	return []string{manifest.Runbook, manifest.Trigger, manifest.Notify}
}

// Look reads the entries.
func (k Texts) Look(ctx context.Context) (View, error) {
	base, floor, note, err := k.Follower.Base(ctx)
	if err != nil {
		return nil, err
	}
	v := textView{Texts: k, base: base, floor: floor, note: note, stored: map[string]manifest.Entry{}}
	for _, word := range k.Words() {
		list, err := k.Follower.Of(base, word)
		if err != nil {
			v.unread = append(v.unread, err)
		}
		for _, e := range list {
			v.stored[e.ID()] = e
		}
	}
	v.file = k.inFiles()
	for id, e := range v.stored {
		if _, is := v.file[id]; !is {
			v.all = append(v.all, e)
		}
	}
	for _, e := range v.file {
		v.all = append(v.all, e)
	}
	slices.SortFunc(v.all, func(a, b manifest.Entry) int { return compareIDs(a, b) })
	return v, nil
}

func compareIDs(a, b manifest.Entry) int {
	if a.ID() < b.ID() {
		return -1
	}
	return 1
}

// inFiles returns the entries that stand in files of this server, by their IDs.
func (k Texts) inFiles() map[string]manifest.Entry {
	out := map[string]manifest.Entry{}
	for _, t := range k.Triggers().All() {
		e := manifest.OfTrigger(t)
		e.File = fmt.Sprintf("%s:%d", t.File, t.Line)
		out[e.ID()] = e
	}
	if rules := k.Notify(); rules != nil {
		for _, r := range rules.Rules() {
			e := manifest.OfNotify(r)
			e.File = r.Place.String()
			out[e.ID()] = e
		}
	}
	books := k.Runbooks()
	for _, r := range books.All() {
		text := books.Source(r)
		e := manifest.Entry{Kind: manifest.Runbook, Name: r.Name, File: books.Place(r.Name),
			Value: manifest.Book{Runbook: r, Text: text}}
		out[e.ID()] = e
	}
	return out
}

// May refuses a caller who lacks the right that an entry asks for.
func (k Texts) May(ctx context.Context, e manifest.Entry) error {
	v := web.ViewOf(ctx)
	switch e.Value.(type) {
	case triggers.Trigger:
		return mayRun(ctx, e)
	case notify.Rule:
		// A person who may order on the hosts of a customer sees all that happens there.
		if e.Customer != "" && v.MayCustomer(access.Act{Verb: access.Order}, e.Customer) {
			return nil
		}
	case manifest.Book:
		act := access.Act{Verb: access.Author, Runbook: e.Name}
		if v.May(act) {
			return nil
		}
		return v.RefuseHouse(act)
	}
	if act := (access.Act{Verb: access.Admin}); !v.May(act) {
		return v.RefuseHouse(act)
	}
	return nil
}

// Check returns what is wrong with entries that could be read: all mistakes about other things. The
// runbooks among them count for the triggers.
func (k Texts) Check(ctx context.Context, list []manifest.Entry) error {
	v, err := k.Follower.Now(ctx)
	if err != nil {
		return nil // Look says so
	}
	books, wrong := k.books(v, list)
	rules := k.Notify()
	for _, e := range list {
		switch x := e.Value.(type) {
		case triggers.Trigger:
			for _, m := range x.Check(schemaOf(books)) {
				wrong = append(wrong, m)
			}
		case notify.Rule:
			for _, text := range rules.Lost(x) {
				wrong = append(wrong, fmt.Errorf("%s: rule %s: %s", x.Place, x.Name, text))
			}
		}
	}
	return errors.Join(wrong...)
}

// books returns the runbooks that would be in force with those in a list, and the mistakes in
// these.
func (k Texts) books(v *kept.Version, list []manifest.Entry) (*scripts.Catalog, []error) {
	var more []scripts.Source
	files := k.Runbooks()
	named := map[string]bool{}
	for _, e := range list {
		if b, is := e.Value.(manifest.Book); is {
			named[e.Name] = true
			if files.Place(e.Name) == "" { // else the plan refuses it if it differs
				more = append(more, b.Source)
			}
		}
	}
	if len(named) == 0 {
		return k.InForce(), nil
	}
	stored, _ := k.Follower.Of(v, manifest.Runbook) // what nobody can read is no runbook
	more = append(more, entries.SourcesOf(slices.DeleteFunc(slices.Clone(stored),
		func(e manifest.Entry) bool { return named[e.Name] || files.Place(e.Name) != "" }))...)
	books, mistakes := entries.With(files, more)
	var wrong []error
	for _, m := range mistakes {
		wrong = append(wrong, m)
	}
	return books, wrong
}

func schemaOf(books *scripts.Catalog) func(name string) (triggers.Schema, error) {
	return func(name string) (triggers.Schema, error) {
		r, err := books.Lookup(name)
		return triggers.SchemaOf(r), err
	}
}

// A textView has the entries of these kinds as they were read.
type textView struct {
	Texts
	base   *kept.Version
	floor  int64
	note   string
	stored map[string]manifest.Entry // by ID
	file   map[string]manifest.Entry // by ID
	all    []manifest.Entry
	unread []error
}

// Entries returns the entries in force.
func (v textView) Entries() []manifest.Entry { return v.all }

// Again reports whether Redis has another version than the one from which the change is made.
func (v textView) Again() bool { return v.note != "" }

// Prepare returns the change of the version.
func (v textView) Prepare(_ context.Context, _ Ask, steps []manifest.Step) (Ready, error) {
	if v.base == nil {
		return Ready{}, fault.Contradict("this server keeps no entries of these kinds")
	}
	next, touched := map[string]manifest.Entry{}, map[kept.PartID]bool{}
	for id, e := range v.stored {
		next[id] = e
	}
	for _, s := range steps {
		id := s.Entry().ID()
		if !slices.Contains(v.Words(), s.Entry().Kind) || s.Change == manifest.Kept ||
			s.Change == manifest.Unchanged {
			continue
		}
		if old, is := v.stored[id]; is {
			touched[partOf(old)] = true
			delete(next, id)
		}
		if s.Change != manifest.Removed {
			touched[partOf(s.Is)] = true
			next[id] = s.Is
		}
	}
	if err := v.together(next, steps); err != nil {
		return Ready{}, err
	}
	if len(next) > kept.CountMax {
		return Ready{}, fault.Contradict(fmt.Sprintf("there would be %d entries that are kept as texts: "+
			"want at most %d", len(next), kept.CountMax))
	}
	change := kept.Change{}
	for id := range touched {
		change[id] = nil
	}
	for _, e := range next {
		if id := partOf(e); touched[id] {
			change[id] = append(change[id], kept.Doc{Name: e.Name, Text: e.Document})
		}
	}
	p, err := v.Follower.Prepare(v.base, v.floor, change)
	if errors.Is(err, kept.ErrTooLarge) {
		err = fault.Contradict(err.Error())
	}
	r := Ready{Change: p}
	if v.note != "" {
		r.Notes = append(r.Notes, v.note)
	}
	return r, err
}

// together refuses a change of runbooks after which triggers could not work any more.
func (v textView) together(next map[string]manifest.Entry, steps []manifest.Step) error {
	changes := slices.ContainsFunc(steps, func(s manifest.Step) bool {
		return s.Entry().Kind == manifest.Runbook && s.Does() && s.Change != manifest.Added
	})
	if !changes {
		return nil
	}
	var all []manifest.Entry
	for _, e := range next {
		all = append(all, e)
	}
	books, mistakes := entries.With(v.Runbooks(), entries.SourcesOf(all))
	var wrong []error
	for _, m := range mistakes {
		wrong = append(wrong, m)
	}
	for _, e := range all {
		if t, is := e.Value.(triggers.Trigger); is {
			for _, m := range t.Check(schemaOf(books)) {
				wrong = append(wrong, errors.New(m.Text))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fault.Contradict("after this, entries in force could not work: " + fault.Words(wrong))
}

func partOf(e manifest.Entry) kept.PartID { return kept.PartID{Kind: e.Kind, Customer: e.Customer} }

// Sees reports whether the caller sees an entry: who sees the house sees all, and who sees all
// hosts of a customer sees the entries of that customer.
func (v textView) Sees(ctx context.Context, e manifest.Entry) (bool, error) {
	view := web.ViewOf(ctx)
	if e.Kind == manifest.Runbook {
		return view.Runbook(e.Name), nil
	}
	return view.All() || e.Customer != "" && view.SeesCustomer(e.Customer), nil
}

// Write returns the entries as documents. Those in files of the server are only named.
func (v textView) Write() (texts []manifest.Text, beside []string, err error) {
	for _, e := range v.all {
		switch {
		case e.File == manifest.BuiltIn:
		case e.File != "":
			beside = append(beside, e.Kind+" "+e.Name+" stands in "+e.File+": it is not exported")
		default:
			texts = append(texts, manifest.Text{Entry: e, Document: e.Document})
		}
	}
	for _, err := range v.unread {
		beside = append(beside, "this server cannot read it: "+err.Error())
	}
	return texts, beside, nil
}
