package notify

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/strictyaml"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
)

// The bounds of a file.
const (
	rulesMax     = 500
	receiversMax = 200
	expireUsual  = 24 * time.Hour
	expireMin    = time.Minute
	expireMax    = 7 * 24 * time.Hour
	waitMax      = 24 * time.Hour
	// waitOutcome is the usual time for which outcomes of a task are collected; the end of the
	// task ends it earlier.
	waitOutcome = 15 * time.Minute
	waitOther   = 5 * time.Second
)

// wanted says what a file of rules has.
const wanted = "a mapping with receivers and rules"

// Parse reads the file of rules:
//
//	receivers:
//	  noc: {mail: {server: "mail.example.org:587", from: muster@example.org, to: [noc@example.org]}}
//	  desk: {webhook: {url_file: /etc/muster/desk.url, key_file: /etc/muster/desk.key}}
//	rules:
//	  - name: failures
//	    what: [outcome]
//	    outcomes: [failed, unknown]  # absent: all
//	    customers: [acme]            # globs; absent: all
//	    runbooks: ["fire*"]          # globs; absent: all
//	    to: [noc, desk]
//
// A file with a mistake is refused whole. The error is of type fleet.Mistakes and has all of them.
// No error repeats a URL.
func Parse(src fleet.Source) (*Rules, error) {
	r := &reader{in: strictyaml.New(src.Name), rules: &Rules{}}
	if root := r.in.Document(src.Data, wanted); root != nil {
		r.read(root)
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return r.rules, nil
}

// ParseRules reads rules alone, as Parse reads a file with them. Which receivers there are is not
// known.
func ParseRules(src fleet.Source) ([]Rule, error) {
	r := &reader{in: strictyaml.New(src.Name), rules: &Rules{}, alone: true}
	if root := r.in.Document(src.Data, wanted); root != nil {
		r.read(root)
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return r.rules.list, nil
}

func (r *reader) read(root *yaml.Node) {
	known := []string{"receivers", "rules"}
	if r.alone {
		known = known[1:]
	}
	if fleet.Foreign(root, known) {
		r.in.Wrong(root.Line, "this is no file of notifications: it has no known key: want receivers "+
			"and rules")
		return
	}
	top := r.in.Fields(root, "the file", known)
	if n := top["receivers"]; n != nil {
		for _, p := range r.in.Pairs(n, "receivers") {
			r.receiver(p)
		}
	}
	if n := top["rules"]; n != nil {
		names := map[string]int{}
		for _, item := range r.in.List(n, "rules") {
			r.rule(item, names)
		}
	}
	if len(r.rules.list) > rulesMax || len(r.rules.receivers) > receiversMax {
		r.in.Wrong(root.Line, "%d rules and %d receivers: want at most %d and %d", len(r.rules.list),
			len(r.rules.receivers), rulesMax, receiversMax)
	}
	for _, used := range r.to {
		if !r.alone && !slices.Contains(r.names, used.Value) {
			r.in.Wrong(used.Line, "there is no receiver %s: %s", wording.Quote(used.Value),
				scripts.Instead(used.Value, r.names))
		}
	}
}

func (r *reader) rule(n *yaml.Node, names map[string]int) {
	f := r.in.Fields(n, "a rule", []string{"name", "what", "outcomes", "customers", "runbooks",
		"zones", "group", "wait", "cleared", "on_change", "to"})
	if f == nil {
		return
	}
	one := Rule{Name: r.name(f["name"], n, "a rule"), Group: ByTask, Place: Place{r.in.File, n.Line},
		Cleared: r.yes(f, "cleared"), OnChange: r.yes(f, "on_change")}
	if line, twice := names[one.Name]; twice && one.Name != "" {
		r.in.Wrong(n.Line, "rule %s is there already, at line %d: choose another name", one.Name, line)
	}
	names[one.Name] = n.Line
	for _, w := range r.words(f["what"], n, "what", wordsOf(Whats())) {
		one.Whats = append(one.Whats, What(w))
	}
	if f["outcomes"] != nil {
		for _, w := range r.words(f["outcomes"], n, "outcomes", wordsOf(jobs.Outcomes())) {
			one.Outcomes = append(one.Outcomes, jobs.Outcome(w))
		}
	}
	one.Customers, one.Runbooks = r.patterns(f["customers"], "customers"),
		r.patterns(f["runbooks"], "runbooks")
	one.Zones = r.patterns(f["zones"], "zones")
	if g := f["group"]; g != nil {
		one.Group = Group(r.in.Word(g, "group", wordsOf(groups())))
	}
	one.Wait = r.waitOf(f["wait"], one)
	r.sense(f, one)
	for _, to := range r.texts(f["to"], n, "to", "the names of receivers") {
		one.To, r.to = append(one.To, to.Value), append(r.to, to)
	}
	r.rules.list = append(r.rules.list, one)
}

func (r *reader) waitOf(n *yaml.Node, one Rule) time.Duration {
	switch {
	case n != nil:
		return r.in.Duration(n, "wait", 0, waitMax)
	case slices.Contains(one.Whats, Outcome), slices.Contains(one.Whats, WindowMissed):
		return waitOutcome
	case slices.Contains(one.Whats, TaskEnded) && one.Group == ByTask:
		return 0
	}
	return waitOther
}

// sense refuses keys that would never have an effect: whoever wrote them expects one.
func (r *reader) sense(f map[string]*yaml.Node, one Rule) {
	refuse := func(key string, fits []What, what string) {
		for _, w := range one.Whats {
			if n := f[key]; n != nil && !slices.Contains(fits, w) {
				r.in.Wrong(n.Line, "%s: %s has no %s, so the rule would never tell of it: make it a rule "+
					"of its own", key, w, what)
			}
		}
	}
	refuse("outcomes", []What{Outcome, TaskEnded}, "outcome")
	refuse("customers", ofCustomers, "known customer")
	refuse("runbooks", ofWork, "runbook")
	refuse("on_change", []What{TaskEnded}, "task before it")
	refuse("cleared", clears, "end")
	if n := f["zones"]; n != nil {
		for _, w := range one.Whats {
			if w == TaskEnded || w == ApprovalWanted || w == ScheduleFailed || w == NodeGone ||
				w == NodeAside ||
				w == DeliveryExpired {
				r.in.Wrong(n.Line, "zones: %s is of no single zone, so the rule would never tell of it", w)
			}
		}
	}
}

func (r *reader) receiver(p strictyaml.Pair) {
	one := Receiver{Name: p.Key.Value, Expire: expireUsual}
	if fleet.CheckName(one.Name) != nil {
		r.in.Wrong(p.Key.Line, "receiver %s: use letters, digits, '.', '-' and '_'",
			wording.Quote(one.Name))
	}
	ways := []string{"webhook", "slack", "alertmanager", "mail", "program"}
	r.names = append(r.names, one.Name)
	f := r.in.Fields(p.Value, "receiver "+wording.Clip(one.Name), append(ways, "expire"))
	if f == nil {
		return
	}
	if n := f["expire"]; n != nil {
		one.Expire = r.in.Duration(n, "expire", expireMin, expireMax)
	}
	found := 0
	for _, way := range ways {
		n := f[way]
		if n == nil {
			continue
		}
		found++
		switch way {
		case "webhook":
			one.Webhook = r.webhook(n, way, "key_file")
		case "slack":
			one.Slack = r.webhook(n, way)
		case "alertmanager":
			one.Alerts = r.webhook(n, way, "user", "password_file")
		case "mail":
			one.Mail = r.mail(n)
		case "program":
			one.Program = r.program(n)
		}
	}
	if found != 1 {
		r.in.Wrong(p.Key.Line, "receiver %s has %s: want one of %s", wording.Clip(one.Name),
			wording.Count(found, "way"), strings.Join(ways, ", "))
	}
	r.rules.receivers = append(r.rules.receivers, one)
}

func (r *reader) webhook(n *yaml.Node, way string, more ...string) *Webhook {
	f := r.in.Fields(n, way, append([]string{"url", "url_file", "ca_file"}, more...))
	if f == nil {
		return &Webhook{}
	}
	w := &Webhook{URLFile: r.path(f, "url_file"), KeyFile: r.path(f, "key_file"),
		CAFile: r.path(f, "ca_file"), Password: r.path(f, "password_file")}
	if u := f["url"]; u != nil {
		text, _ := r.in.Text(u, "url")
		w.URL = text
		if err := CheckURL(text); err != nil {
			r.in.Wrong(u.Line, "url: %v", err)
		}
	}
	if (f["url"] == nil) == (f["url_file"] == nil) {
		r.in.Wrong(n.Line, "%s needs either url, or url_file where the URL itself is a secret", way)
	}
	if way == "webhook" && f["key_file"] == nil {
		r.in.Wrong(n.Line, "webhook needs key_file, a file with the key that signs the messages: so the "+
			"receiver can tell who sends")
	}
	if u := f["user"]; u != nil {
		w.User, _ = r.in.Text(u, "user")
	}
	if (f["user"] == nil) != (f["password_file"] == nil) {
		r.in.Wrong(n.Line, "%s has one of user and password_file: want both or none", way)
	}
	return w
}

func (r *reader) program(n *yaml.Node) *Program {
	f := r.in.Fields(n, "program", []string{"argv", "timeout"})
	p := &Program{Timeout: 30 * time.Second}
	for _, arg := range r.texts(f["argv"], n, "argv", "the path of a program, and its arguments") {
		p.Argv = append(p.Argv, arg.Value)
	}
	if len(p.Argv) > 0 && !filepath.IsAbs(p.Argv[0]) {
		r.in.Wrong(f["argv"].Line, "argv: %s: want an absolute path", wording.Quote(p.Argv[0]))
	}
	if t := f["timeout"]; t != nil {
		p.Timeout = r.in.Duration(t, "timeout", time.Second, 5*time.Minute)
	}
	return p
}

// patterns returns a list of globs.
func (r *reader) patterns(n *yaml.Node, what string) (list []string) {
	if n == nil {
		return nil
	}
	for _, one := range r.texts(n, n, what, "names or patterns") {
		if _, err := path.Match(one.Value, ""); err != nil {
			r.in.Wrong(one.Line, "%s: %s is no pattern: want a name, or one with * and ?", what,
				wording.Quote(one.Value))
		}
		list = append(list, one.Value)
	}
	return list
}

func wordsOf[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
