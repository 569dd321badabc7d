package frame

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"muster/server/web"
)

// onceAge bounds the age of facts for a browser without a stream, which asks every five seconds.
const onceAge = 5 * time.Second

// liveKey marks the request by which somebody looks at the parts of a page.
type liveKey struct{}

// taken keeps the content of a page for an eye.
type taken struct {
	show  Show
	err   error
	light bool // only what is quickly known is wanted
}

// An eye looks at the parts of a page that change, as one caller sees them.
type eye struct {
	pages *Frame
	look  *http.Request // of the page
	who   web.Caller
	again func() (web.Caller, error)
}

// eyeOf returns the eye of the caller who gets an answer by w.
func eyeOf(p *Frame, w http.ResponseWriter, look *http.Request) eye {
	e := eye{pages: p, look: look}
	if x, ok := w.(*web.Exchange); ok {
		e.who, e.again = x.Who, x.Again
	}
	return e
}

// A piece is a part of a page as a browser gets it.
type piece struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	Hash string `json:"hash"`
	Hold bool   `json:"hold,omitempty"`
}

// A sight is the page at one look.
type sight struct {
	parts []piece
	light bool   // these are the parts that are quickly known
	turn  string // of the page
	took  time.Duration
	err   error
	panic string // what a look beside a stream has died of
}

// at looks at the page: at what is quickly known, if that is wanted and the page can tell.
func (e eye) at(ctx context.Context, light bool) sight {
	begun, got := time.Now(), sight{}
	to := taken{light: light}
	x := &web.Exchange{ResponseWriter: &Reply{Head: http.Header{}}, Who: e.who, Again: e.again}
	e.pages.mux.ServeHTTP(x, e.look.WithContext(context.WithValue(ctx, liveKey{}, &to)))
	got.light, got.turn, got.err = light && to.show.Light, to.show.Turn, to.err
	if got.err == nil {
		got.parts, got.err = piecesOf(ctx, to.show.Parts)
	}
	got.took = time.Since(begun)
	return got
}

// safely looks at the whole page for a stream, with the rights that its caller has now. A panic is
// part of what it returns: here nobody would take it, and the server would end.
func (e eye) safely(ctx context.Context) (got sight) {
	defer func() {
		if v := recover(); v != nil {
			got = sight{panic: fmt.Sprintf("%v, in a look beside a stream:\n%s", v, debug.Stack())}
		}
	}()
	if e.again != nil {
		who, err := e.again()
		if err != nil {
			return sight{err: err}
		}
		e.who = who
	}
	return e.at(ctx, false)
}

// now looks at the whole page, as it is now.
func (e eye) now(ctx context.Context) sight { return e.at(ctx, false) }

// lately looks at the whole page. Parts that are quickly known are as they are now, all others may
// be a few seconds old.
func (e eye) lately(ctx context.Context) sight {
	quick := e.at(ctx, true)
	if quick.err != nil || !quick.light {
		return quick
	}
	got := e.at(web.WithSince(ctx, time.Now().Add(-onceAge)), false)
	for i, one := range got.parts {
		for _, now := range quick.parts {
			if one.ID == now.ID {
				got.parts[i] = now
			}
		}
	}
	return got
}

// piecesOf writes the parts that change.
func piecesOf(ctx context.Context, parts []Part) ([]piece, error) {
	list := []piece{}
	for _, one := range parts {
		if !one.Live {
			continue
		}
		var html bytes.Buffer
		if err := one.Body.Render(ctx, &html); err != nil {
			return nil, err
		}
		list = append(list, piece{one.ID, html.String(), hashOf(html.Bytes()), one.Hold})
	}
	return list, nil
}
