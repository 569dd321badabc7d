package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/read"
)

type (
	nothing struct{}

	nodesOutput    struct{ Body api.NodeList }
	queueOutput    struct{ Body api.QueueInfo }
	runbooksOutput struct{ Body api.RunbookList }
	tokenInput     struct {
		Whose
		Body api.TokenRequest
	}
	tokenOutput  struct{ Body api.TokenAnswer }
	tokensOutput struct{ Body api.TokenList }
	tokenName    struct {
		Whose
		Name string `path:"name"`
	}
	healthInput  struct{ Asked }
	healthOutput struct {
		Status int
		Body   api.Health
	}
)

func (s *Server) nodes(ctx context.Context, _ *nothing) (*nodesOutput, error) {
	list, err := s.queue.Hub.Nodes.Nodes(ctx)
	if err != nil {
		return nil, problem(err)
	}
	if list == nil {
		list = []jobs.Node{}
	}
	for i := range list {
		if list[i].Children == nil {
			list[i].Children = []jobs.Child{}
		}
		if list[i].Zones == nil {
			list[i].Zones = []string{}
		}
		for _, text := range []string{otherZones(list[i]), list[i].Doubt} {
			if text != "" {
				list[i].Note = strings.TrimPrefix(list[i].Note+"; "+text, "; ")
			}
		}
	}
	return &nodesOutput{api.NodeList{Nodes: list, Duties: s.dutyList(ctx)}}, nil
}

func (s *Server) depths(ctx context.Context, _ *nothing) (*queueOutput, error) {
	zones, err := s.queue.Conn.Zones(ctx)
	if err != nil {
		return nil, problem(err)
	}
	missing, unknown := s.noNode(ctx, "")
	if unknown != nil && !queue.Spoiled(unknown) {
		return nil, problem(unknown)
	}
	out := &queueOutput{api.QueueInfo{Zones: make([]api.Zone, 0, len(zones))}}
	for _, zone := range zones {
		z, err := s.zone(ctx, zone)
		if queue.Spoiled(err) { // which is no reason to hide the other zones
			z, err = api.Zone{Zone: zone, Trouble: err.Error()}, nil
			z.Deferred.Appointments = []jobs.Appointment{}
		}
		if err != nil {
			return nil, problem(err)
		}
		if z.NoNode = missing[zone]; unknown != nil {
			z.NoNode = "whether a node works here is not known: " + unknown.Error()
		}
		out.Body.Zones = append(out.Body.Zones, z)
	}
	return out, nil
}

// zone reads what waits in a zone.
func (s *Server) zone(ctx context.Context, zone string) (api.Zone, error) {
	d, err := s.queue.Read.Zones.Depth(ctx, zone)
	if err != nil {
		return api.Zone{}, err
	}
	z := zoneOf(d)
	z.Deferred, err = s.times.why.Deferrals(ctx, zone)
	return z, err
}

func zoneOf(d read.Depth) api.Zone {
	return api.Zone{Zone: d.Zone, Queued: d.Queued, Again: d.Again, Due: d.Due, Oldest: d.Oldest,
		Overdue: d.Overdue, Frozen: d.Frozen, Why: d.Why, Owes: d.Owes, Halted: d.Halted,
		Paused: d.Paused, Sharing: d.Sharing}
}

func (s *Server) runbooks(context.Context, *nothing) (*runbooksOutput, error) {
	out := &runbooksOutput{api.RunbookList{Runbooks: []api.Runbook{}}}
	for _, r := range s.catalog.Load().All() {
		out.Body.Runbooks = append(out.Body.Runbooks, describe(r))
	}
	return out, nil
}

// tokenPrefix lets people and scanners recognise a token that was left lying
// around.
const tokenPrefix = "muster_"

// tokenBytes of chance cannot be guessed; so a plain hash of them can be kept.
const tokenBytes = 32

// addToken makes a token. Whoever gets here is at this machine, or has a token.
func (s *Server) addToken(ctx context.Context, in *tokenInput) (*tokenOutput, error) {
	if err := fleet.CheckName(in.Body.Name); err != nil {
		return nil, refusal(mistakes("body.name", err))
	}
	chance := make([]byte, tokenBytes)
	rand.Read(chance) // never fails
	secret := tokenPrefix + base64.RawURLEncoding.EncodeToString(chance)
	if err := s.queue.Hub.Tokens.CreateToken(ctx, in.Body.Name, secret); err != nil {
		return nil, problem(err)
	}
	in.note(s.log, "token created", "name", in.Body.Name)
	return &tokenOutput{api.TokenAnswer{Name: in.Body.Name, Token: secret}}, nil
}

func (s *Server) tokens(ctx context.Context, _ *nothing) (*tokensOutput, error) {
	list, err := s.queue.Hub.Tokens.Tokens(ctx)
	if err != nil {
		return nil, problem(err)
	}
	out := &tokensOutput{api.TokenList{Tokens: make([]api.TokenInfo, 0, len(list))}}
	for _, t := range list {
		out.Body.Tokens = append(out.Body.Tokens, api.TokenInfo(t))
	}
	return out, nil
}

func (s *Server) removeToken(ctx context.Context, in *tokenName) (*struct{}, error) {
	err := s.queue.Hub.Tokens.RemoveToken(ctx, in.Name)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no token %q; `muster token ls` "+
			"lists them", clip(in.Name)))
	}
	if err != nil {
		return nil, problem(err)
	}
	in.note(s.log, "token removed", "name", in.Name)
	return nil, nil
}

// health says whether the server can work. Strangers hear no more than that.
func (s *Server) health(ctx context.Context, in *healthInput) (*healthOutput, error) {
	out := &healthOutput{http.StatusOK, api.Health{Status: "ok", Redis: "ok", Version: s.cfg.Version}}
	if st := s.stock.Now(); st != nil {
		out.Body.Inventory, out.Body.Hosts = st.Version, st.Len()
	}
	var wrong []string
	err := s.queue.Conn.Writes(ctx)
	full := errors.Is(err, queue.ErrFull)
	switch {
	case full:
		// No other server fares better, and here people can still look, and cancel.
		out.Body.Redis = err.Error()
		wrong = append(wrong, "redis is full: submits are refused")
	case err != nil:
		out.Status, out.Body.Redis = http.StatusServiceUnavailable, err.Error()
		wrong = append(wrong, "redis cannot be used")
	}
	if in.who.trusted() {
		if text := s.doubtOfTimes(ctx); text != "" && out.Status == http.StatusOK {
			wrong = append(wrong, text)
			out.Body.Doubt = true
		}
		if text := s.stock.Complaint(); text != "" {
			wrong = append(wrong, text)
		}
		if text := s.unstaffed(ctx); text != "" {
			wrong = append(wrong, text)
		}
		for _, stops := range []string{s.lostAgreed(ctx), s.owing(ctx)} {
			if stops != "" {
				wrong, out.Body.Stopped = append(wrong, stops), true
			}
		}
		// Redis that is away is said already, and what this server itself tried is newer.
		a, _ := s.awayHistory(ctx)
		if text := s.trouble.Words(); text != "" && out.Status == http.StatusOK {
			wrong = append(wrong, "history is not written: "+text)
		} else if a != nil {
			wrong = append(wrong, a.Words())
		}
	} else {
		out.Body = api.Health{Status: "ok"}
	}
	out.Body.Full = full
	if len(wrong) > 0 {
		out.Body.Status = strings.Join(wrong, "; ")
	}
	return out, nil
}

// owing says, for people, which zone waits for history; empty: none does.
func (s *Server) owing(ctx context.Context) string {
	zones, err := s.queue.Conn.Zones(ctx)
	if err != nil {
		return "" // that Redis cannot be used is said already
	}
	debts, _ := s.queue.Care.Debts.Debts(ctx, zones) // of those that can be read
	for _, d := range debts {
		if d.Owed == "" {
			continue
		}
		text := "nothing starts in zone " + d.Zone + " before history was asked what has ended: Redis " +
			"may have forgotten it"
		if s.history == nil {
			text += "; this server keeps no history"
		}
		return text + ". To start without: `muster nodes thaw --zone " + d.Zone + " --reason …`"
	}
	return ""
}
