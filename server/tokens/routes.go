package tokens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/audit"
	"muster/fleet"
	"muster/jobs/queue"
	"muster/server/scribe"
	"muster/server/web"
)

type (
	makeInput struct {
		web.Whose
		Body api.TokenRequest
	}
	makeOutput struct{ Body api.TokenAnswer }
	listInput  struct{ web.Asked }
	listOutput struct{ Body api.TokenList }
	nameInput  struct {
		web.Whose
		Name string `path:"name" doc:"name or id"`
	}
)

// Routes makes, lists and removes tokens. An admin does so for everybody, others for themselves.
type Routes struct {
	Book  *Book
	Audit *scribe.Scribe // nil: none
	Log   hclog.Logger
}

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	add := web.Post("/v1/tokens", "Make a token")
	add.DefaultStatus = http.StatusCreated
	huma.Register(api, add, s.add)
	huma.Register(api, web.Get("/v1/tokens", "List tokens"), s.list)
	huma.Register(api, web.Delete("/v1/tokens/{name}", "Remove a token"), s.remove)
}

// wishOf returns the token that a caller asks for, or all mistakes.
func wishOf(who web.Caller, b api.TokenRequest) (wish, []error) {
	w := wish{name: b.Name, owner: cmp.Or(b.Owner, who.Name), maker: who.Name, until: who.Until}
	wrong := web.Mistakes("body.name", fleet.CheckName(b.Name))
	if b.Owner != "" {
		wrong = append(wrong, web.Mistakes("body.owner", checkOwner(b.Owner))...)
	}
	life, err := parseLife(b.Life)
	w.life = life
	wrong = append(wrong, web.Mistakes("body.life", err)...)
	if b.Scope != nil {
		w.scope, err = grantOf(*b.Scope)
		wrong = append(wrong, web.Mistakes("body.scope", err)...)
	}
	return w, wrong
}

// grantOf reads the scope of a request. Without verbs it has all.
func grantOf(s api.TokenScope) (*access.Grant, error) {
	g := &access.Grant{Runbooks: s.Runbooks, Hosts: s.Hosts}
	for _, verb := range s.Verbs {
		g.Verbs = append(g.Verbs, access.Verb(verb))
	}
	if len(g.Verbs) == 0 {
		g.Verbs = access.Verbs()
	}
	_, err := access.NewScope(*g)
	return g, err
}

// scopeOf returns a scope as answers have it.
func scopeOf(g *access.Grant) *api.TokenScope {
	if g == nil {
		return nil
	}
	s := &api.TokenScope{Verbs: []string{}, Runbooks: g.Runbooks, Hosts: g.Hosts}
	for _, verb := range g.Verbs {
		s.Verbs = append(s.Verbs, string(verb))
	}
	return s
}

func (s Routes) add(ctx context.Context, in *makeInput) (*makeOutput, error) {
	who := in.Caller()
	w, wrong := wishOf(who, in.Body)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	if w.owner != who.Name && !who.Admin {
		return nil, huma.Error403Forbidden(fmt.Sprintf("you are %s, so you can make tokens of %s only; "+
			"an admin makes those of others", who.Name, who.Name))
	}
	if who.Scope != nil {
		return nil, huma.Error403Forbidden("the token that you show has a scope, so it makes no other " +
			"tokens: use one without, or the server's socket")
	}
	// Nothing is written down for a request that comes to nothing: who is refused decides how often.
	if err := s.Book.mayMake(ctx, w); err != nil {
		return nil, answerOf(err)
	}
	end, err := s.Audit.Says(ctx, scribe.Deed{Verb: "token.create", Object: "token/" + w.owner + "/" +
		w.name})
	if err != nil {
		return nil, err
	}
	r, token, err := s.Book.make(ctx, w)
	end(resultOf(err))
	if err != nil {
		return nil, answerOf(err)
	}
	in.Note(s.Log, "token created", "id", r.ID, "name", r.Name, "owner", r.Owner, "expires", r.Expires)
	return &makeOutput{api.TokenAnswer{ID: r.ID, Name: r.Name, Owner: r.Owner, Expires: r.Expires,
		Token: token}}, nil
}

func (s Routes) list(ctx context.Context, in *listInput) (*listOutput, error) {
	all, err := s.Book.list(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	who := in.Caller()
	out := &listOutput{api.TokenList{Tokens: make([]api.TokenInfo, 0, len(all))}}
	for _, t := range all {
		if !who.Admin && t.Owner != who.Name {
			continue
		}
		out.Body.Tokens = append(out.Body.Tokens, api.TokenInfo{ID: t.ID, Name: t.Name, Owner: t.Owner,
			Maker: t.Maker, Created: t.Created, Expires: t.Expires, Used: infoTime(t.Used),
			Scope: scopeOf(t.Scope), Wrong: t.Wrong})
	}
	return out, nil
}

func (s Routes) remove(ctx context.Context, in *nameInput) (*struct{}, error) {
	who := in.Caller()
	if who.Scope != nil && in.Name != who.Token {
		return nil, huma.Error403Forbidden("the token that you show has a scope, so it removes no " +
			"other tokens than itself, " + who.Token)
	}
	owner := who.Name
	if who.Admin {
		owner = ""
	}
	r, err := s.Book.named(ctx, owner, in.Name)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no token %q; `muster token ls` "+
			"lists them", web.Clip(in.Name)))
	case err != nil:
		return nil, answerOf(err)
	}
	end, err := s.Audit.Says(ctx, scribe.Deed{Verb: "token.remove", Object: "token/" + r.ID,
		Stops: true})
	if err != nil {
		return nil, err
	}
	err = s.Book.drop(ctx, r.ID)
	end(resultOf(err))
	if err != nil {
		return nil, answerOf(err)
	}
	in.Note(s.Log, "token removed", "id", r.ID, "name", r.Name, "owner", r.Owner)
	return nil, nil
}

// answerOf returns the answer for an error of the book.
func answerOf(err error) error {
	if errors.Is(err, errKeyless) || errors.Is(err, errAmbiguous) || errors.Is(err, errMany) {
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
