package sessions

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"

	"muster/server/web"
)

// style is the whole look of the pages. Their policy names its hash, and allows nothing else.
const style = `:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}` +
	`main{max-width:34rem;margin:12vh auto;padding:0 1rem}h1{font-size:1.3rem}` +
	`button{font:inherit;padding:.5rem 1.2rem;cursor:pointer}code{overflow-wrap:anywhere}` +
	`form{margin:1.2rem 0}`

// view has the words and the buttons of a page.
type view struct {
	Title   string
	Words   []string // paragraphs
	Names   []string // a list of names behind them
	Forms   []form
	Next    string // path of a page of this server that a link leads to; empty: none
	Go      bool   // the browser follows the link by itself
	Allowed string // where forms may lead beside this server; empty: nowhere
	Status  int    // 0: 200
}

// form is a button that sends fields.
type form struct {
	Action, Button string
	Fields         []field
}

type field struct{ Name, Value string }

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}} · muster</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
{{if .Go}}<meta http-equiv="refresh" content="0;url={{.Next}}">
{{end}}<style>` + style + `</style></head>
<body><main><h1>{{.Title}}</h1>
{{range .Words}}<p>{{.}}</p>
{{end}}{{if .Names}}<ul>{{range .Names}}<li><code>{{.}}</code></li>
{{end}}</ul>
{{end}}{{range .Forms}}<form method="post" action="{{.Action}}">
{{range .Fields}}<input type="hidden" name="{{.Name}}" value="{{.Value}}">
{{end}}<button>{{.Button}}</button></form>
{{end}}{{if .Next}}<p><a href="{{.Next}}">Continue</a></p>
{{end}}</main></body></html>
`))

// styleHash names the style in the policy of a page.
var styleHash = func() string {
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

// show writes a page. It has no script, nothing shows it within another page, and what it links to
// does not learn its address.
func show(w http.ResponseWriter, v view) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", strings.TrimSpace("default-src 'none'; base-uri 'none'; "+
		"frame-ancestors 'none'; style-src "+styleHash+"; form-action 'self' "+v.Allowed))
	// With no-referrer browsers would send `Origin: null` with forms, and be refused.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if v.Status != 0 {
		w.WriteHeader(v.Status)
	}
	// A browser that does not read it has gone.
	_ = page.Execute(w, v)
}

// callerOf returns who sends a request, as the guard has found out; nobody: a stranger.
func callerOf(w http.ResponseWriter) web.Caller {
	if x, ok := w.(*web.Exchange); ok {
		return x.Who
	}
	return web.Caller{}
}
