package apply

import (
	"context"
	"encoding/json"

	"muster/api"
	"muster/jobs/queue/applies"
	"muster/server/web"
)

type (
	listInput struct {
		Count int `query:"count" minimum:"1" maximum:"1000" default:"20"`
	}
	listOutput struct{ Body api.AppliedList }
	showInput  struct {
		Apply string `path:"apply" doc:"id or version"`
	}
	entriesInput struct {
		Kind     string `query:"kind" doc:"only entries of this kind"`
		Customer string `query:"customer" doc:"only entries of this customer"`
	}
	entriesOutput struct{ Body api.EntryTexts }
)

// resultOf reads a result that was kept.
func resultOf(r applies.Result) api.Applied {
	var out api.Applied
	if err := json.Unmarshal([]byte(r.Text), &out); err != nil {
		out = api.Applied{Doubt: "it cannot be read: " + err.Error()}
	}
	out.Version = r.Version
	if r.Doubt != nil {
		out.Doubt = r.Doubt.Error()
	}
	if out.Entries == nil {
		out.Entries = []api.AppliedEntry{}
	}
	for i, e := range out.Entries {
		if e.Differences == nil {
			out.Entries[i].Differences = []string{}
		}
	}
	return out
}

// list answers GET /v1/applies.
func (r Resource) list(ctx context.Context, in *listInput) (*listOutput, error) {
	list, err := r.Store.Results(ctx, in.Count)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &listOutput{api.AppliedList{Applies: []api.Applied{}}}
	for _, one := range list {
		short := resultOf(one)
		short.Entries = []api.AppliedEntry{} // muster apply show has them
		out.Body.Applies = append(out.Body.Applies, short)
	}
	return out, nil
}

// show answers GET /v1/applies/{apply}.
func (r Resource) show(ctx context.Context, in *showInput) (*applyOutput, error) {
	kept, err := r.Store.Result(ctx, in.Apply)
	if err != nil {
		return nil, web.NotThere(err, "there is no apply %q; `muster apply ls` lists those that are kept",
			in.Apply)
	}
	return &applyOutput{resultOf(kept)}, nil
}

// entries answers GET /v1/entries.
func (r Resource) entries(ctx context.Context, in *entriesInput) (*entriesOutput, error) {
	state, err := r.Store.State(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	whole := web.ViewOf(ctx).Whole()
	out := api.EntryTexts{Version: state.Version, Entries: []api.EntryText{}, Notes: []string{}}
	for _, k := range r.Kinds {
		view, err := k.Look(ctx)
		if err != nil {
			return nil, web.Problem(err)
		}
		texts, beside, err := view.Write()
		if err != nil {
			return nil, web.Problem(err)
		}
		if whole {
			out.Notes = append(out.Notes, beside...)
		}
		for _, t := range texts {
			if in.Kind != "" && in.Kind != t.Kind || in.Customer != "" && in.Customer != t.Customer {
				continue
			}
			seen, err := view.Sees(ctx, t.Entry)
			if err != nil {
				return nil, web.Problem(err)
			}
			if seen {
				out.Entries = append(out.Entries, api.EntryText{Kind: t.Kind, Name: t.Name,
					Customer: t.Customer, Origin: state.Origins[t.ID()].Name, Document: t.Document,
					Attached: t.Attached})
			}
		}
	}
	return &entriesOutput{out}, nil
}
