package gitops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/audit"
	"muster/internal/gitsource"
	"muster/internal/manifest"
	"muster/internal/repofile"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue/applies"
	"muster/jobs/queue/hub"
	"muster/server/apply"
	"muster/server/fault"
	"muster/server/scribe"
	"muster/server/web"
	"muster/windows"
)

// looking is one look at a repository.
type looking struct {
	*Follower
	repo repofile.Repository
	copy *gitsource.Copy
	was  applies.Place
	now  *applies.Place // what is known after the look
}

// mistaken is an error about the files of a commit.
type mistaken struct{ error }

// refused reports whether the contents of a repository are wrong.
func refused(err error) bool {
	var wrong *fault.Error
	return errors.Is(err, gitsource.ErrRefused) || errors.As(err, new(mistaken)) ||
		errors.As(err, &wrong) && wrong.Kind != fault.Away
}

// errorMax bounds the words that are kept of an error.
const errorMax = 4000 // bytes

// wordsOf returns the words of an error, with all mistakes, each on a line of its own.
func wordsOf(err error) string {
	list := []string{err.Error()}
	var wrong *fault.Error
	var answer *huma.ErrorModel
	switch {
	case errors.As(err, &wrong) && len(wrong.Mistakes) > 0:
		list = nil
		for _, one := range wrong.Mistakes {
			m := (*fault.Mistake)(nil)
			if errors.As(one, &m) {
				one = errors.New(m.Message)
			}
			list = append(list, one.Error())
		}
	case errors.As(err, &answer):
		list = []string{answer.Detail}
		for _, one := range answer.Errors {
			list = append(list, one.Message)
		}
	}
	return wording.ClipTo(strings.ToValidUTF8(strings.Join(list, "\n"), "?"), errorMax)
}

// bring puts the newest commit in force.
func (l *looking) bring(ctx context.Context) error {
	one, err := l.copy.Fetch(ctx)
	if err != nil {
		return err
	}
	l.now.Look.Seen = one.ID
	signer := ""
	if l.repo.Signers != "" {
		if signer, err = l.copy.Signer(ctx, one); err != nil {
			return err
		}
	}
	if err := l.descends(ctx, one); err != nil {
		return err
	}
	files, err := l.files(ctx, one)
	if err != nil {
		return err
	}
	if err := l.apply(ctx, one, signer, files); err != nil {
		return err
	}
	return l.copy.Remember(ctx, one.ID)
}

// descends refuses a commit that does not descend from the one in force, as Redis and the copy know
// it, unless a person has accepted just this commit. An acceptance that somebody put back in Redis
// does not count: what came into force meanwhile is in the copy.
func (l *looking) descends(ctx context.Context, one gitsource.Commit) error {
	kept, err := l.copy.InForce(ctx)
	if err == nil && l.was.Accept == one.ID && (kept == "" || l.was.Commit != "" &&
		l.copy.Descends(ctx, gitsource.Commit{ID: l.was.Commit}, kept) == nil) {
		return nil // it was accepted when the commit was in force that the copy knows, or a later one
	}
	for _, earlier := range []string{l.was.Commit, kept} {
		if err == nil {
			err = l.copy.Descends(ctx, one, earlier)
		}
	}
	if errors.Is(err, gitsource.ErrRefused) {
		err = mistaken{fmt.Errorf("%w; if that is right: `muster repository poll %s --accept %s "+
			"--reason WHY`", err,
			l.repo.Name, one.ID)}
	}
	return err
}

// files reads the files of a commit as an apply.
func (l *looking) files(ctx context.Context, one gitsource.Commit) (api.ApplyRequest, error) {
	b := api.ApplyRequest{Origin: l.repo.Origin(), Prune: true, Empty: l.repo.Empty}
	tree, err := l.copy.Tree(ctx, one)
	if err != nil {
		return b, err
	}
	list, err := l.copy.Read(ctx, tree, tree.Names())
	if err != nil {
		return b, err
	}
	b.Files = windowsFiles(list)
	var names []string
	var wrong []error
	for _, ics := range manifest.Attachments(b.Files) {
		path := windows.Attached(ics.File, ics.Name)
		switch {
		case !tree.Has(path):
			wrong = append(wrong, fmt.Errorf("%s: there is no file %s", ics.File, wording.Quote(path)))
		case !slices.Contains(names, path):
			names = append(names, path)
		}
	}
	if len(wrong) > 0 {
		return b, mistaken{errors.Join(wrong...)}
	}
	attached, err := l.copy.Read(ctx, tree, names)
	b.Attached = windowsFiles(attached)
	return b, err
}

func windowsFiles(list []gitsource.File) (out []windows.File) {
	for _, f := range list {
		out = append(out, windows.File{Name: f.Name, Content: f.Content})
	}
	return out
}

// apply puts the files of a commit in force, with the record that says so.
func (l *looking) apply(ctx context.Context, one gitsource.Commit, signer string,
	b api.ApplyRequest) error {
	ask, err := l.ask(one, signer, b)
	if err != nil {
		return err
	}
	b.ID, b.Check = string(jobs.NewTaskID(l.Now(), l.Chance())), true
	would, err := l.Applies.Put(ctx, b, ask)
	if err != nil {
		return err
	}
	p := l.inForce(one, signer)
	p.Look.Adrift = 0
	if l.was.Commit == one.ID {
		p.Look.Adrift = differs(would)
	}
	if would.Already {
		if p.Version == 0 || p.Commit != l.was.Commit {
			p.Version = would.Version
		}
		*l.now = p
		return nil
	}
	ask.More = func(version int64) (hub.Prepared, error) {
		p.Version = version
		return l.Places.PreparePlace(l.was, p)
	}
	end, err := l.Audit.Says(ctx, scribe.Deed{Verb: "apply", Object: "apply/" + b.ID,
		Reason: ask.Giver.Name + ": " + ask.Giver.Reason})
	if err != nil {
		return err
	}
	b.Check = false
	if _, err := l.Applies.Put(ctx, b, ask); err != nil {
		end(audit.Failed)
		return err
	}
	end(audit.Done)
	*l.now = p
	return nil
}

// ask returns what the repository wants to put in force.
func (l *looking) ask(one gitsource.Commit, signer string, b api.ApplyRequest) (apply.Ask, error) {
	set, err := manifest.Read(manifest.Input{Files: b.Files, Attached: b.Attached,
		Rollout: jobs.CheckRollout})
	if err == nil && len(set.Entries) == 0 && !b.Empty {
		err = fmt.Errorf("commit %s has no entry: to remove all that comes from this repository, set "+
			"empty: true in the file of repositories", gitsource.Short(one.ID))
	}
	if err != nil {
		return apply.Ask{}, mistaken{err}
	}
	reason := "commit " + gitsource.Short(one.ID) + " of " + l.repo.Branch + ": " + one.Subject
	return apply.Ask{Set: set, Attached: b.Attached, Commit: one.ID, May: l.may,
		Giver: web.Giver{Done: "applied", Name: l.repo.Origin(), Proven: signer != "",
			Reason: reason}}, nil
}

// inForce returns what is known of the repository when a commit has come into force.
func (l *looking) inForce(one gitsource.Commit, signer string) applies.Place {
	p := *l.now
	if p.Commit != one.ID {
		p.Since = p.Look.At
	}
	p.Commit, p.Subject, p.Signer, p.Look.Seen = one.ID, one.Subject, signer, one.ID
	p.Look.Error, p.Look.Refused, p.Accept, p.Look.Reached = "", false, "", p.Look.At
	return p
}

// differs counts the entries on which an apply has an effect.
func differs(a api.Applied) (n int) {
	for _, e := range a.Entries {
		if e.Change != string(manifest.Unchanged) && e.Change != string(manifest.Kept) || e.Moved {
			n++
		}
	}
	return n
}

// drift counts the entries in force that differ from the commit in force, while a later commit is
// refused or no commit can be fetched.
func (l *looking) drift(ctx context.Context) {
	l.now.Look.Adrift = -1
	one := gitsource.Commit{ID: l.was.Commit}
	b, err := l.files(ctx, one)
	if err != nil {
		return
	}
	ask, err := l.ask(one, l.was.Signer, b)
	if err != nil {
		return
	}
	b.Check = true
	if would, err := l.Applies.Put(ctx, b, ask); err == nil {
		l.now.Look.Adrift = differs(would)
	}
}

// may returns why the branch must not change an entry; nil: it may. An entry from a
// branch of some customers works on no hosts of others, whatever hosts there will be.
func (l *looking) may(e manifest.Entry) error {
	s, schedule := e.Value.(windows.Entry)
	unread := e.Place == "" && (e.Value == nil || schedule && s.On == "") // in force, and not known
	if err := l.repo.May(e); err != nil || l.repo.Customers == nil || unread {
		return err
	}
	if err := apply.Only(e, e.Customer); err != nil {
		where := e.Place + ": "
		if e.Place == "" {
			where = "in force: "
		}
		return fmt.Errorf("%s%s %s: %w", where, e.Kind, e.Name, err)
	}
	return nil
}
