package passkeys

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster/api"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/scripts"
	"muster/server/pages/frame"
	"muster/trust"
)

// sign finds out which order would be signed, of which task.
func sign(h frame.House, r *http.Request) (frame.Asking, error) {
	id := r.PathValue("task")
	if r.Method == http.MethodPost && r.PostForm.Get("client") == "" {
		return frame.Asking{}, frame.Refusal(http.StatusUnprocessableEntity, "nothing was signed: a "+
			"passkey needs JavaScript; without it, sign with `muster approvals approve %s`", id)
	}
	var d api.HeldDetail
	if err := h.Get("/v1/approvals/"+url.PathEscape(id), nil, &d); err != nil {
		return frame.Asking{}, err
	}
	path := "/approvals/" + url.PathEscape(id)
	a := frame.Asking{Word: "sign", Title: "Sign the order: " + d.Runbook + ", task " + id,
		Nav: "Approvals", Back: path, Method: http.MethodPost, Path: "/v1" + path, NoReason: true,
		Target: frame.Target{N: d.Hosts, Noun: "host", Set: frame.SetOf("sign", d.Hash)}}
	if err := tell(&a, d); err != nil {
		return frame.Asking{}, frame.Refusal(http.StatusConflict, "the order of task %s cannot be "+
			"read: %s", id, err)
	}
	a.More = askBrowser(base64.StdEncoding.EncodeToString(sshsig.Challenge(trust.NamespaceOrder,
		d.Order)))
	a.Body = func(form url.Values) any { return endorsed(d.Hash, form) }
	a.Done = func(got *frame.Reply) string {
		var done api.Endorsed
		if err := json.Unmarshal(got.Body.Bytes(), &done); err == nil && done.Committed {
			return "/tasks/" + url.PathEscape(id)
		}
		return path // it says who else must sign
	}
	return a, nil
}

// tell says what the order is, as its bytes have it.
func tell(a *frame.Asking, d api.HeldDetail) error {
	order, err := trust.Parse(d.Order)
	if err != nil {
		return err
	}
	var spec jobs.Spec
	var frozen scripts.Frozen
	if err := json.Unmarshal(order.Spec, &spec); err != nil {
		return err
	}
	if err := json.Unmarshal(spec.Action, &frozen); err != nil {
		return err
	}
	a.Hit("Runbook %s on %s (%s), ordered by %s", spec.Runbook, frame.Count(d.Hosts, "host", "hosts"),
		spec.On, spec.Operator)
	if spec.Reason != "" {
		a.Hit("Because: %s", spec.Reason)
	}
	if order.BreakGlass != "" {
		a.Hit("You break the glass: you sign alone, and others review it afterwards. Because: %s",
			order.BreakGlass)
	}
	if args := d.Ran.Text(); args != "" {
		a.Hit("Its arguments: %s", args)
	}
	var steps []string
	for _, s := range frozen.Steps {
		steps = append(steps, s.Name)
	}
	a.Hit("Its steps: %s", strings.Join(steps, ", "))
	a.Hit("%s", lastRun(d, frozen.Hash))
	for _, c := range d.Customers {
		a.Hit("%s of %s: %s", frame.Count(c.Count, "host", "hosts"), customer(c.Customer),
			frame.ClipList(c.Hosts))
	}
	a.Hit("It may begin from %s until %s.", when(order.NotBefore), when(order.NotAfter))
	if spec.Window {
		a.Hit("It begins in approved windows of the hosts only.")
	}
	if spec.Override != "" {
		a.Hit("It ignores freezes. Because: %s", spec.Override)
	}
	a.Hit("You sign the order with the hash %s, and no other one.", trust.HashOf(d.Order))
	return nil
}

// withdraw finds out which signature would be taken back.
func withdraw(h frame.House, r *http.Request) (frame.Asking, error) {
	path := "/approvals/" + url.PathEscape(r.PathValue("task"))
	var d api.HeldDetail
	if err := h.Get("/v1"+path, nil, &d); err != nil {
		return frame.Asking{}, err
	}
	a := frame.Asking{Word: "withdraw", Title: "Take back your signature: task " + string(d.Task),
		Nav: "Approvals", Back: path, Method: http.MethodDelete, Path: "/v1" + path + "/signature",
		NoReason: true, Stops: true,
		Target: frame.Target{N: 1, Noun: "signature", Set: frame.SetOf("withdraw", d.Hash)}}
	a.Hit("Your signature under the order %s counts no longer, by whichever key it was made.", d.Hash)
	a.Hit("If you have ordered the task yourself, all of it is taken back, and it never runs.")
	a.Done = func(got *frame.Reply) string {
		var done api.Withdrawn
		if err := json.Unmarshal(got.Body.Bytes(), &done); err == nil && done.Whole {
			return "/tasks/" + url.PathEscape(string(d.Task))
		}
		return path
	}
	return a, nil
}

// lastRun says whether the text of the runbook is that of its last run.
func lastRun(d api.HeldDetail, hash string) string {
	switch {
	case d.Last == nil:
		return "No earlier run of this runbook is known."
	case d.Last.Hash == hash:
		return "Its last run, task " + string(d.Last.Task) + " at " + when(d.Last.At.Time) +
			", had the same text."
	}
	return "Its last run, task " + string(d.Last.Task) + " at " + when(d.Last.At.Time) +
		", had another text: `muster approvals show " + string(d.Task) + "` shows the difference."
}

func customer(name string) string {
	if name == "" {
		return "no customer"
	}
	return name
}

func when(t time.Time) string { return t.UTC().Format(frame.TextForm) }

// endorsed returns the request of a form that passkey.js has filled. A text that is no base64
// becomes an empty one, which the API refuses.
func endorsed(hash string, form url.Values) api.EndorseRequest {
	field := func(name string) []byte {
		data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(form.Get(name)))
		if err != nil {
			return []byte{}
		}
		return data
	}
	return api.EndorseRequest{Hash: hash, Passkey: &api.PasskeyProof{Client: field("client"),
		Authenticator: field("authenticator"), Signature: field("signature")}}
}
