package sessions

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/audit"
	"muster/jobs"
	"muster/server/scribe"
	"muster/server/web"
)

type (
	askInput   struct{ web.Whose }
	linkOutput struct{ Body api.LoginLink }
	listOutput struct{ Body api.SessionList }
	oneInput   struct {
		web.Whose
		ID string `path:"session"`
	}
)

// Routes makes links that log browsers in, and lists and ends sessions. An admin ends those of
// everybody, others their own.
type Routes struct {
	Book  *Book
	Base  func() (string, error) // begins the URL of this server for browsers
	Audit *scribe.Scribe         // nil: none
	Log   hclog.Logger
}

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	add := web.Post("/v1/login/links", "Make a link that logs a browser in, once")
	add.DefaultStatus = http.StatusCreated
	huma.Register(api, add, s.link)
	huma.Register(api, web.Get("/v1/sessions", "List sessions"), s.list)
	huma.Register(api, web.Delete("/v1/sessions/{session}", "End a session"), s.end)
	huma.Register(api, web.Post("/v1/logout", "End the session by which you call"), s.logout)
}

func (s Routes) link(ctx context.Context, in *askInput) (*linkOutput, error) {
	who := in.Caller()
	base, err := s.Base()
	if err != nil {
		return nil, huma.Error409Conflict(err.Error())
	}
	if _, err := s.Book.usable(); err != nil {
		return nil, answerOf(err)
	}
	if who.Session != "" {
		kind, err := s.Book.kindOf(ctx, who.Session)
		if err != nil {
			return nil, web.Problem(err)
		}
		if kind != Program {
			return nil, huma.Error403Forbidden("the session of a browser makes no links for others: " +
				"call `muster login --browser`")
		}
	}
	end, err := s.Audit.Says(ctx, scribe.Deed{Verb: "login.link", Object: "login/link"})
	if err != nil {
		return nil, err
	}
	link, secret, err := s.Book.offer(ctx, who)
	end(resultOf(err))
	if err != nil {
		return nil, answerOf(err)
	}
	in.Note(s.Log, "login link made", "id", link.ID, "owner", link.Owner, "expires", link.Expires)
	return &linkOutput{api.LoginLink{URL: base + oncePath + "/" + secret, Principal: link.Owner,
		Expires: link.Expires}}, nil
}

func (s Routes) list(ctx context.Context, in *askInput) (*listOutput, error) {
	keys, err := s.Book.keys()
	if err != nil {
		return nil, web.Problem(err)
	}
	all, err := s.Book.all(ctx, keys)
	if err != nil {
		return nil, web.Problem(err)
	}
	who := in.Caller()
	out := &listOutput{api.SessionList{Sessions: []api.SessionInfo{}}}
	for _, k := range all {
		if !who.Admin && k.Owner != who.Name {
			continue
		}
		if no := k.Record.holds(k.Used, s.Book.now()); k.Wrong == "" && no != nil {
			k.Wrong = no.Error()
		}
		out.Body.Sessions = append(out.Body.Sessions, api.SessionInfo{ID: k.ID, Kind: string(k.Kind),
			Owner: k.Owner, Proof: k.Proof, Token: k.Token, Created: k.Created, Expires: k.Expires,
			Used: jobs.Time{Time: k.Used}, Wrong: k.Wrong})
	}
	return out, nil
}

func (s Routes) end(ctx context.Context, in *oneInput) (*struct{}, error) {
	who := in.Caller()
	if who.Scope != nil && in.ID != who.Session {
		return nil, huma.Error403Forbidden("what you show has a scope, so it ends no other session " +
			"than itself")
	}
	k, found, err := s.Book.find(ctx, in.ID)
	if err != nil {
		return nil, web.Problem(err)
	}
	if !found || !who.Admin && k.Owner != who.Name {
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no session %q; `muster session ls` "+
			"lists them", web.Clip(in.ID)))
	}
	return nil, s.drop(ctx, in.Whose, k)
}

func (s Routes) logout(ctx context.Context, in *askInput) (*struct{}, error) {
	id := in.Caller().Session
	if id == "" {
		return nil, huma.Error409Conflict("you call without a session, so there is none to end")
	}
	return nil, s.drop(ctx, in.Whose, Kept{Record: Record{ID: id, Owner: in.Caller().Name}, field: id})
}

// drop ends a session, with an entry in the audit log.
func (s Routes) drop(ctx context.Context, by web.Whose, k Kept) error {
	end, err := s.Audit.Says(ctx, scribe.Deed{Verb: "session.end", Object: "session/" + k.ID,
		Stops: true})
	if err != nil {
		return err
	}
	err = s.Book.end(ctx, k.field)
	end(resultOf(err))
	if err != nil {
		return web.Problem(err)
	}
	by.Note(s.Log, "session ended", "id", k.ID, "owner", k.Owner)
	return nil
}

// find returns the record that the list shows under an id.
func (b *Book) find(ctx context.Context, id string) (Kept, bool, error) {
	keys, err := b.keys()
	if err != nil || !isID(id) {
		return Kept{}, false, err
	}
	all, err := b.all(ctx, keys)
	for _, k := range all {
		if k.ID == id {
			return k, true, err
		}
	}
	return Kept{}, false, err
}

// kindOf returns the kind of a session that a caller has shown.
func (b *Book) kindOf(ctx context.Context, id string) (Kind, error) {
	k, found, err := b.find(ctx, id)
	if err == nil && !found {
		err = unknown
	}
	return k.Kind, err
}

// answerOf returns the answer for an error of the book.
func answerOf(err error) error {
	if errors.Is(err, errKeyless) {
		return huma.Error409Conflict(err.Error())
	}
	return web.Problem(err)
}

// resultOf returns what an error says about the effect of an order.
func resultOf(err error) string {
	if err != nil {
		return audit.Failed
	}
	return audit.Done
}
