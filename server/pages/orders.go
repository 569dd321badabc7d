package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// An order is a link of a page to the page of an order.
type order struct{ word, name, link string }

// An asking is an order before somebody gives it: what it would hit, and how it is given.
type asking struct {
	word, title string
	nav, back   string // the page from which it comes
	hits        []string
	more        templ.Component // nil: nothing more

	target
	method, path string
	body         func(form url.Values) any
	reason       bool // one is needed
	stops        bool // it ends work
	// done returns the page to go to, by the answer of the API; nil: back.
	done func(a *answer) string
}

// A target is the set of things that an order hits, as it is now.
type target struct {
	n    int    // of the things
	noun string // for one of them
	set  string // names the set
	// shrinks: the set can only lose members, so a smaller one is a part of the one that was meant.
	shrinks bool
}

// planner finds out what an order would hit now.
type planner func(h house, r *http.Request) (asking, error)

// typeFrom is the number of things from which on a person types it before an order is given.
const typeFrom = 50

// mustType reports whether the number has to be typed.
func (a asking) mustType() bool { return a.n >= typeFrom && a.noun != "" }

// setOf names a set by what decides its members.
func setOf(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%q\n", fmt.Sprint(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// ask returns the handler that shows an order before it is given.
func (p *Pages) ask(plan planner) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := p.house(w, r)
		a, err := plan(h, r)
		if err != nil {
			p.refuse(w, r, h, err)
			return
		}
		p.write(w, r, h, askingShow(h, a, r.URL.Path, nil))
	}
}

// askingShow returns the page of an order. wrong says why it was not carried out.
func askingShow(h house, a asking, path string, wrong *problem) show {
	s := show{title: a.title, nav: a.nav}
	if wrong != nil {
		s.status = wrong.Status
	}
	no := ""
	if err := h.may(a.method, a.path); err != nil {
		no = err.Error()
	}
	s.parts = []part{{id: "order", body: askingPart(a, path, wrong, no)}}
	return s
}

// formMax bounds the form of an order.
const formMax = 64 << 10 // bytes

// order returns the handler that gives an order.
func (p *Pages) order(plan planner) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := p.house(w, r)
		r.Body = http.MaxBytesReader(w, r.Body, formMax)
		if err := r.ParseForm(); err != nil {
			p.refuse(w, r, h, refusal(http.StatusUnprocessableEntity, "the form cannot be read: %s", err))
			return
		}
		a, err := plan(h, r)
		if err != nil {
			p.refuse(w, r, h, err)
			return
		}
		to, err := give(h, a, r.PostForm)
		if err != nil {
			p.write(w, r, h, askingShow(h, a, r.URL.Path, problemOf(err)))
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// give carries out an order if it means what is there now, and returns the page to go to.
func give(h house, a asking, form url.Values) (string, error) {
	if err := a.check(form); err != nil {
		return "", err
	}
	var body any
	if a.body != nil {
		body = a.body(form)
	}
	got, err := h.raw(h.ctx, a.method, a.path, body)
	if err != nil {
		return "", err
	}
	to := a.back
	if a.done != nil {
		to = a.done(got)
	}
	path, mark, marked := strings.Cut(to, "#")
	path += "?did=" + url.QueryEscape(a.word)
	if marked {
		path += "#" + mark
	}
	return path, nil
}

// check compares an order with what is there now.
func (a asking) check(form url.Values) error {
	n, err := strconv.Atoi(form.Get("n"))
	if err != nil || form.Get("set") == "" {
		return refusal(http.StatusUnprocessableEntity,
			"the order does not say which set it means: load the page again")
	}
	fits := form.Get("set") == a.set && (n == a.n || a.shrinks && a.n < n)
	if !fits {
		return refusal(http.StatusConflict, "nothing was done: since the page was made, what the order "+
			"would hit has changed from %d to %d, or it is another set. Look at it below, and give the "+
			"order again if you mean it", n, a.n)
	}
	if a.mustType() && strings.TrimSpace(form.Get("typed")) != strconv.Itoa(n) {
		return refusal(http.StatusUnprocessableEntity, "nothing was done: type %d, the number of %ss "+
			"that the order hits", n, a.noun)
	}
	if a.reason && strings.TrimSpace(form.Get("reason")) == "" {
		return refusal(http.StatusUnprocessableEntity,
			"nothing was done: a reason is needed, for those who read it later")
	}
	return nil
}

// sift separates the orders that the person may give from those that the policy refuses. paths has
// the request of each order, by its word.
func sift(h house, list []order, paths map[string]string) ([]order, []denied) {
	var no []denied
	list = slices.DeleteFunc(list, func(o order) bool {
		err := h.may(http.MethodPost, paths[o.word])
		if err != nil {
			no = append(no, denied{o.name, err.Error()})
		}
		return err != nil
	})
	return list, no
}

// hit adds a line about what an order hits.
func (a *asking) hit(format string, args ...any) {
	a.hits = append(a.hits, fmt.Sprintf(format, args...))
}
