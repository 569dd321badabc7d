package reviews

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/audit"
	"muster/history/ledger"
	"muster/internal/wording"
	"muster/jobs"
	"muster/server/scribe"
	"muster/server/web"
	"muster/trust"
)

type (
	listInput struct {
		web.Asked
		All bool `query:"all" doc:"also those that are closed"`
	}
	listOutput struct{ Body api.ReviewList }
	closeInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Task string `path:"task"`
		Body api.ReviewRequest
	}
	closeOutput struct{ Body api.Review }
)

// Routes lists reviews, and closes them.
type Routes struct {
	Entries *ledger.Ledger               // nil: there is no audit log
	Audit   *scribe.Scribe               // nil: none
	Trust   func() (*trust.Rules, error) // which names are of one person; nil: nobody has said so
	Log     hclog.Logger
}

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/reviews", "List broken glass that nobody has reviewed"), s.list)
	huma.Register(api, web.Post("/v1/reviews/{task}", "Close the review of broken glass"), s.close)
}

// read returns all reviews.
func (s Routes) read(ctx context.Context) ([]api.Review, error) {
	if s.Entries == nil {
		return nil, huma.Error404NotFound("this server keeps no audit log, so nobody can break the " +
			"glass here, and there is nothing to review")
	}
	// Entries may be on their way into the tables, or in the spool: then the list is not whole.
	if st := s.Audit.State(); st.Away != "" {
		return nil, web.Away("the audit log cannot be read at the moment: " + wording.Clip(st.Away))
	}
	list, err := all(ctx, s.Entries)
	if err != nil {
		return nil, web.Away(err.Error())
	}
	return reviewsOf(list), nil
}

// list answers GET /v1/reviews.
func (s Routes) list(ctx context.Context, in *listInput) (*listOutput, error) {
	list, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	if !in.All {
		list = openOf(list)
	}
	if list == nil {
		list = []api.Review{}
	}
	return &listOutput{api.ReviewList{Reviews: list}}, nil
}

// close answers POST /v1/reviews/{task}.
func (s Routes) close(ctx context.Context, in *closeInput) (*closeOutput, error) {
	name, _, err := web.Operator(in.Caller(), in.Body.As, in.User)
	wrong := web.Mistakes("body.as", err)
	id, err := jobs.ParseTaskID(in.Task)
	wrong = append(wrong, web.Mistakes("path.task", err)...)
	words := strings.TrimSpace(in.Body.Words)
	if words == "" {
		wrong = append(wrong, web.Mistake("body.words", "words are needed: say what you have looked at, "+
			"and what you found"))
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	list, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	open := openOf(list)
	i := slices.IndexFunc(open, func(r api.Review) bool { return r.Task == id })
	if i < 0 {
		return nil, huma.Error404NotFound(fmt.Sprintf("task %s has no open review; `muster approvals "+
			"reviews` lists those that are open", id))
	}
	same, err := s.samePerson(open[i].Who, name)
	if err != nil {
		return nil, err
	}
	if same {
		return nil, huma.Error403Forbidden(fmt.Sprintf("you are %s, and %s broke the glass: somebody "+
			"else closes the review", name, open[i].Who))
	}
	end, err := s.Audit.Says(ctx, scribe.Deed{Verb: scribe.GlassReviewed, Object: "task/" + string(id),
		Reason: words})
	if err != nil {
		return nil, err
	}
	end(audit.Done)
	s.Log.Info("broken glass was reviewed", "task", id, "who", open[i].Who, "by", name, "words", words)
	done := open[i]
	done.By, done.Words = name, words
	return &closeOutput{done}, nil
}

// samePerson reports whether two names are of one person, as far as the folder trust says so.
func (s Routes) samePerson(name, other string) (bool, error) {
	if name == other || s.Trust == nil {
		return name == other, nil
	}
	rules, err := s.Trust()
	if err != nil {
		return false, web.Away("this server cannot read whom it trusts: " + err.Error())
	}
	return rules.Signers.Same(name, other), nil
}

// Words says which reviews are open; empty: none, or another line says that the log is away.
func (s Routes) Words(ctx context.Context) string {
	if s.Entries == nil {
		return ""
	}
	list, err := s.read(ctx)
	open := openOf(list)
	if err != nil || len(open) == 0 {
		return ""
	}
	oldest := open[len(open)-1]
	return fmt.Sprintf("%s of broken glass not closed, the oldest of task %s, by %s: muster "+
		"approvals reviews", wording.Count(len(open), "review"), oldest.Task, wording.Clip(oldest.Who))
}
