package frame

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"muster/api"

	"github.com/a-h/templ"
)

// An Order is a link of a page to the page of an order.
type Order struct{ Word, Name, Link string }

// An Asking is an order before somebody gives it: what it would hit, and how it is given.
type Asking struct {
	Word, Title string
	Nav, Back   string // the page from which it comes
	hits        []string
	More        templ.Component // nil: nothing more

	Target
	Method, Path string
	Body         func(form url.Values) any
	Reason       bool // one is needed
	NoReason     bool // it takes none
	Stops        bool // it ends work
	// done returns the page to go to, by the answer of the API; nil: back.
	Done func(a *Reply) string
}

// A Target is the set of things that an order hits, as it is now.
type Target struct {
	N    int    // of the things
	Noun string // for one of them
	Set  string // names the set
	// shrinks: the set can only lose members, so a smaller one is a part of the one that was meant.
	Shrinks bool
}

// A Planner finds out what an order would hit now.
type Planner func(h House, r *http.Request) (Asking, error)

// typeFrom is the number of things from which on a person types it before an order is given.
const typeFrom = 50

// mustType reports whether the number has to be typed.
func (a Asking) MustType() bool { return a.N >= typeFrom && a.Noun != "" }

// SetOf names a set by what decides its members.
func SetOf(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%q\n", fmt.Sprint(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// ask returns the handler that shows an order before it is given.
func (p *Frame) ask(plan Planner) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := p.House(w, r)
		a, err := plan(h, r)
		if err != nil {
			p.Refuse(w, r, h, err)
			return
		}
		p.Write(w, r, h, askingShow(h, a, r.URL.Path, nil))
	}
}

// askingShow returns the page of an order. wrong says why it was not carried out.
func askingShow(h House, a Asking, path string, wrong *Problem) Show {
	s := Show{Title: a.Title, Nav: a.Nav}
	if wrong != nil {
		s.Status = wrong.Status
	}
	no := ""
	if err := h.May(a.Method, a.Path); err != nil {
		no = err.Error()
	}
	s.Parts = []Part{{ID: "order", Body: askingPart(a, path, wrong, no)}}
	return s
}

// formMax bounds the form of an order.
const formMax = 64 << 10 // bytes

// Order returns the handler that gives an order.
func (p *Frame) order(plan Planner) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := p.House(w, r)
		r.Body = http.MaxBytesReader(w, r.Body, formMax)
		if err := r.ParseForm(); err != nil {
			p.Refuse(w, r, h, Refusal(http.StatusUnprocessableEntity, "the form cannot be read: %s", err))
			return
		}
		a, err := plan(h, r)
		if err != nil {
			p.Refuse(w, r, h, err)
			return
		}
		to, err := give(h, a, r.PostForm)
		if err != nil {
			p.Write(w, r, h, askingShow(h, a, r.URL.Path, ProblemOf(err)))
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// give carries out an order if it means what is there now, and returns the page to go to.
func give(h House, a Asking, form url.Values) (string, error) {
	if err := a.Check(form); err != nil {
		return "", err
	}
	var body any
	if a.Body != nil {
		body = a.Body(form)
	}
	got, err := h.Raw(h.Ctx, a.Method, a.Path, body)
	if err != nil {
		return "", err
	}
	to := a.Back
	if a.Done != nil {
		to = a.Done(got)
	}
	path, mark, marked := strings.Cut(to, "#")
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	path += sep + "did=" + url.QueryEscape(a.Word)
	if marked {
		path += "#" + mark
	}
	return path, nil
}

// check compares an order with what is there now.
func (a Asking) Check(form url.Values) error {
	n, err := strconv.Atoi(form.Get("n"))
	if err != nil || form.Get("set") == "" {
		return Refusal(http.StatusUnprocessableEntity,
			"the order does not say which set it means: load the page again")
	}
	fits := form.Get("set") == a.Set && (n == a.N || a.Shrinks && a.N < n)
	if !fits {
		return Refusal(http.StatusConflict, "nothing was done: since the page was made, what the order "+
			"would hit has changed from %d to %d, or it is another set. Look at it below, and give the "+
			"order again if you mean it", n, a.N)
	}
	if a.MustType() && strings.TrimSpace(form.Get("typed")) != strconv.Itoa(n) {
		return Refusal(http.StatusUnprocessableEntity, "nothing was done: type %d, the number of %ss "+
			"that the order hits", n, a.Noun)
	}
	if a.Reason && strings.TrimSpace(form.Get("reason")) == "" {
		return Refusal(http.StatusUnprocessableEntity,
			"nothing was done: a reason is needed, for those who read it later")
	}
	return nil
}

// Sift separates the orders that the person may give from those that the policy refuses. paths has
// the request of each order, by its word.
func Sift(h House, list []Order, paths map[string]string) ([]Order, []Denied) {
	var no []Denied
	list = slices.DeleteFunc(list, func(o Order) bool {
		err := h.May(http.MethodPost, paths[o.Word])
		if err != nil {
			no = append(no, Denied{o.Name, err.Error()})
		}
		return err != nil
	})
	return list, no
}

// hit adds a line about what an order hits.
func (a *Asking) Hit(format string, args ...any) {
	a.hits = append(a.hits, Plain(fmt.Sprintf(format, args...)))
}

// ReasonOnly is the body of an order that has a reason at most.
func ReasonOnly(form url.Values) any {
	return api.OrderRequest{Reason: strings.TrimSpace(form.Get("reason"))}
}
