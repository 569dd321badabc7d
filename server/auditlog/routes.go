package auditlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/audit"
	"muster/history/ledger"
	"muster/jobs"
	"muster/server/scribe"
	"muster/server/web"
)

// Routes answers questions about the audit log, and erases names.
type Routes struct {
	Watch
	Logger hclog.Logger
}

type (
	pageInput struct {
		Who    string    `query:"who" doc:"a principal, such as os:alice"`
		Verb   string    `query:"verb" doc:"such as task.submit, or task.*"`
		Object string    `query:"object" doc:"such as task/0wcy7y2fb2, or host/*"`
		From   time.Time `query:"from"`
		To     time.Time `query:"to"`
		Before int64     `query:"before" minimum:"0" doc:"only entries before this one"`
		All    bool      `query:"all" doc:"also the entries that say how a request ended"`
		Limit  int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
	}
	seqInput struct {
		Seq int64 `path:"seq" minimum:"0"`
	}
	growthInput struct {
		From int64 `query:"from" minimum:"1" doc:"size of an older checkpoint"`
	}
	pageOutput   struct{ Body api.AuditPage }
	detailOutput struct{ Body api.AuditDetail }
	proofOutput  struct{ Body audit.Proof }
	growthOutput struct{ Body audit.Growing }
	stateOutput  struct{ Body api.AuditState }
	eraseInput   struct {
		web.Whose
		Body api.AuditErase
	}
	eraseOutput struct{ Body api.AuditErased }
)

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/audit", "List entries of the audit log, the newest first"), s.page)
	huma.Register(api, web.Get("/v1/audit/state", "Show the state of the audit log"), s.state)
	huma.Register(api, web.Raw(web.Get("/v1/audit/export", "Export the audit log for an examination"),
		"application/jsonl"), s.export)
	huma.Register(api, web.Get("/v1/audit/growth",
		"Prove that the audit log began as an older checkpoint says"), s.growth)
	huma.Register(api, web.Get("/v1/audit/entries/{seq}", "Show an entry of the audit log"), s.entry)
	huma.Register(api, web.Get("/v1/audit/entries/{seq}/proof",
		"Prove that an entry is in the audit log"), s.proof)
	huma.Register(api, web.Post("/v1/audit/erase", "Erase a name from the audit log, or a reason"),
		s.erase)
}

// errNone is the answer of a server without an audit log.
var errNone = huma.Error404NotFound("this server keeps no audit log")

// problem is the answer for an error of the ledger.
func problem(err error) error {
	var known huma.StatusError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, audit.ErrTooEarly):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, context.Canceled):
		return web.Problem(err)
	}
	return web.Away(err.Error())
}

func (s Routes) page(ctx context.Context, in *pageInput) (*pageOutput, error) {
	if s.Ledger == nil {
		return nil, errNone
	}
	f := ledger.Filter{Who: in.Who, Verb: in.Verb, Object: in.Object, From: in.From, To: in.To,
		Before: in.Before, Outcomes: in.All, EntriesMax: in.Limit + 1}
	list, err := s.Ledger.Page(ctx, f)
	if err != nil {
		return nil, problem(err)
	}
	out := &pageOutput{api.AuditPage{Entries: []api.AuditEntry{}}}
	if len(list) > in.Limit {
		list = list[:in.Limit]
		out.Body.Next = list[in.Limit-1].Record.Seq
	}
	for _, r := range list {
		out.Body.Entries = append(out.Body.Entries, entryOf(r))
	}
	return out, nil
}

func entryOf(r ledger.Row) api.AuditEntry {
	e := api.AuditEntry{Seq: r.Record.Seq, ID: r.ID, At: jobs.Time{Time: r.At.Time}, Kind: r.Kind,
		Who: r.Who, Proof: r.Proof, Verb: r.Verb, Object: r.Object, Task: r.Task, Server: r.Server,
		Late: r.Late, Times: r.Times, Said: api.AuditSaid(r.Record.Private)}
	if p := r.Record.Person; p != nil {
		e.Who, e.Erased = cmp.Or(p.Name, p.Ref), p.Erased()
	}
	if end := cmp.Or(r.Ended, r.End); end != nil {
		e.Ended = &api.AuditEnded{Result: end.Result, Status: end.Status}
	}
	return e
}

func (s Routes) entry(ctx context.Context, in *seqInput) (*detailOutput, error) {
	if s.Ledger == nil {
		return nil, errNone
	}
	r, err := s.Ledger.Entry(ctx, in.Seq)
	if err != nil {
		return nil, problem(err)
	}
	return &detailOutput{api.AuditDetail{AuditEntry: entryOf(r), Record: r.Record}}, nil
}

// proof proves an entry by the smallest checkpoint that has it: that is the one which sinks got
// first.
func (s Routes) proof(ctx context.Context, in *seqInput) (*proofOutput, error) {
	if s.Ledger == nil {
		return nil, errNone
	}
	r, err := s.Ledger.Entry(ctx, in.Seq)
	if err != nil {
		return nil, problem(err)
	}
	point, err := s.Ledger.PointOf(ctx, in.Seq)
	if err != nil {
		return nil, problem(fmt.Errorf("entry %d: %w", in.Seq, err))
	}
	path, err := audit.Inclusion(point.Size, in.Seq, s.Ledger.Hashes(ctx))
	if err != nil {
		return nil, problem(err)
	}
	return &proofOutput{audit.Proof{Entry: r.Record, Checkpoint: point.Note,
		Hashes: audit.HashTexts(path), Keys: s.keys()}}, nil
}

func (s Routes) growth(ctx context.Context, in *growthInput) (*growthOutput, error) {
	if s.Ledger == nil {
		return nil, errNone
	}
	newest, err := s.Ledger.NewestPoint(ctx)
	if err != nil {
		return nil, problem(err)
	}
	if newest.Size < in.From {
		return nil, huma.Error409Conflict(fmt.Sprintf("the newest checkpoint is of %d entries, fewer "+
			"than %d: the log was cut, or restored from an older copy; `muster audit verify` says more",
			newest.Size, in.From))
	}
	path, err := audit.Consistency(newest.Size, in.From, s.Ledger.Hashes(ctx))
	if err != nil {
		return nil, problem(err)
	}
	return &growthOutput{audit.Growing{Newer: newest.Note, Hashes: audit.HashTexts(path),
		Keys: s.keys()}}, nil
}

// keys returns the public keys of this server.
func (s Routes) keys() []string {
	_, keys, err := s.Keys()
	if err != nil || keys.None() {
		return []string{}
	}
	return keys.Texts()
}

func (s Routes) state(ctx context.Context, _ *web.Nothing) (*stateOutput, error) {
	if s.Ledger == nil {
		return nil, errNone
	}
	size, err := s.Ledger.Size(ctx)
	if err != nil {
		return nil, problem(err)
	}
	newest, err := s.Ledger.NewestPoint(ctx)
	if err != nil {
		return nil, problem(err)
	}
	sinks, err := s.Ledger.Sinks(ctx)
	if err != nil {
		return nil, problem(err)
	}
	st := s.Scribe.State()
	out := &stateOutput{api.AuditState{Entries: size, Signed: newest.Size, Checkpoint: newest.Note,
		Keys: s.keys(), Trouble: s.Words(ctx), Spooled: st.Spooled + st.Memory,
		Sinks: []api.AuditSink{}}}
	for _, one := range sinks {
		if !s.Anchor.Has(one.Sink) {
			continue // it was one earlier
		}
		out.Body.Sinks = append(out.Body.Sinks, api.AuditSink{Sink: one.Sink, Entries: one.Entries,
			Checkpoints: one.Checkpoints, At: jobs.Time{Time: one.At}, Since: jobs.Time{Time: one.Since},
			Trouble: one.Trouble})
	}
	return out, nil
}

// erase takes a name away, or the reason of an entry. The entry that says so was written before.
func (s Routes) erase(ctx context.Context, in *eraseInput) (*eraseOutput, error) {
	if s.Ledger == nil {
		return nil, errNone
	}
	if (in.Body.Name == "") == (in.Body.Entry == nil) {
		return nil, web.Refusal([]error{web.Mistake("body", "want a name or an entry, one of both")})
	}
	if in.Body.Reason == "" {
		return nil, web.Refusal([]error{web.Mistake("body.reason", "a reason is needed: say why it is "+
			"erased, for those who miss it later")})
	}
	object, err := s.erasing(ctx, in)
	if err != nil {
		return nil, problem(err)
	}
	in.Note(s.Logger, "erased from the audit log", "object", object)
	return &eraseOutput{api.AuditErased{Object: object}}, nil
}

func (s Routes) erasing(ctx context.Context, in *eraseInput) (string, error) {
	if in.Body.Entry != nil {
		r, err := s.Ledger.Entry(ctx, *in.Body.Entry)
		if err != nil {
			return "", err
		}
		object := audit.ErasedEntry(r.Record.Seq)
		return object, s.said(ctx, object, in.Body.Reason, func() error {
			return s.Ledger.EraseEntry(ctx, r.Record.Seq)
		})
	}
	p, err := s.Ledger.PersonNamed(ctx, in.Body.Name)
	if err != nil {
		return "", err
	}
	object := audit.ErasedPerson(p.Ref)
	return object, s.said(ctx, object, in.Body.Reason, func() error {
		return s.Ledger.Erase(ctx, p.Ref)
	})
}

// said writes what will be erased, and then erases it. The name is not in the entry.
func (s Routes) said(ctx context.Context, object, reason string, do func() error) error {
	end, err := s.Scribe.Says(ctx, scribe.Deed{Verb: audit.VerbErase, Object: object, Reason: reason})
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		end(audit.Failed)
		return err
	}
	end(audit.Done)
	return nil
}

// export streams the log: a header, all checkpoints, all entries, and a last line.
func (s Routes) export(ctx context.Context, _ *web.Nothing) (*huma.StreamResponse, error) {
	if s.Ledger == nil {
		return nil, errNone
	}
	size, err := s.Ledger.Size(ctx)
	if err != nil && !errors.Is(err, ledger.ErrHashes) {
		return nil, problem(err)
	}
	h := audit.Header{Form: audit.FormOfExports, Keys: s.keys(), Size: size, At: audit.TimeOf(s.Now())}
	if signer, _, err := s.Keys(); err == nil && signer != nil {
		h.Origin = signer.Origin()
	}
	// A tree whose hashes are damaged has no root, and the examination says which.
	if root, err := audit.Root(size, s.Ledger.Hashes(ctx)); err == nil {
		h.Root = root.String()
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		_, w := humago.Unwrap(ctx)
		w.Header().Set("Content-Type", "application/jsonl")
		x := exporting{http.NewResponseController(w), json.NewEncoder(w), 0}
		x.all(ctx.Context(), s.Ledger, h)
	}}, nil
}

// pointsPart is the number of checkpoints that are read at a time.
const pointsPart = 500

// exporting is an export under way.
type exporting struct {
	answer *http.ResponseController
	enc    *json.Encoder
	n      int64
}

func (x *exporting) all(ctx context.Context, l *ledger.Ledger, h audit.Header) {
	err := x.line(audit.Line{Log: &h})
	for last, more := int64(-1), true; err == nil && more; {
		// In parts, so that a slow client holds no connection to the database.
		var part []ledger.Point
		err = l.Points(ctx, last, pointsPart, func(p ledger.Point) error {
			part = append(part, p)
			return nil
		})
		more = len(part) == pointsPart
		for _, p := range part {
			if err == nil {
				err = x.line(audit.Line{Checkpoint: p.Note})
			}
			last = p.Size
		}
	}
	if err == nil {
		err = l.Each(ctx, 0, 0, func(r audit.Record) error {
			x.n++
			return x.line(audit.Line{Entry: &r})
		})
	}
	if err == nil {
		// Without this line the reader knows that it did not get all.
		_ = x.line(audit.Line{End: &audit.Tail{Entries: x.n}})
	}
}

// line writes one line. Each has its time: an export may take long, a client that reads nothing
// must not hold it for ever.
func (x *exporting) line(l audit.Line) error {
	if err := x.answer.SetWriteDeadline(time.Now().Add(web.AnswerTimeout)); err != nil {
		return err
	}
	return x.enc.Encode(l)
}
