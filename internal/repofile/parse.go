package repofile

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/lazyregexp"
	"muster/internal/manifest"
	"muster/internal/strictyaml"
	"muster/internal/wording"
)

// Set has the repositories of a file.
type Set struct {
	list []Repository
	user string
}

// All returns the repositories in the order of the file; a nil set has none.
func (s *Set) All() []Repository {
	if s == nil {
		return nil
	}
	return s.list
}

// User returns the name of the user whose rights git has; empty: that of the server.
func (s *Set) User() string { return s.user }

// Find returns a repository by its name.
func (s *Set) Find(name string) (Repository, bool) {
	i := slices.IndexFunc(s.All(), func(r Repository) bool { return r.Name == name })
	if i < 0 {
		return Repository{}, false
	}
	return s.list[i], true
}

// Of returns the repository from which entries of an origin come.
func (s *Set) Of(origin string) (Repository, bool) {
	name, is := strings.CutPrefix(origin, Prefix)
	if !is {
		return Repository{}, false
	}
	return s.Find(name)
}

// The bounds of a file.
const (
	repositoriesMax = 200
	everyUsual      = time.Minute
	everyMin        = 5 * time.Second
	everyMax        = 24 * time.Hour
)

// Parse reads the file of repositories:
//
//	repositories:
//	  - name: rules
//	    url: ssh://git@git.example.org/acme/rules.git
//	    branch: main
//	    path: conf
//	    customers: [acme]
//	    signers: /etc/muster/git/allowed_signers
//	    key: /etc/muster/git/rules
//	    known_hosts: /etc/muster/git/known_hosts
//
// A file with a mistake is refused whole. The error is of type fleet.Mistakes and has all of them.
func Parse(src fleet.Source) (*Set, error) {
	r := &reader{in: strictyaml.New(src.Name), names: map[string]int{}, set: &Set{}}
	if root := r.in.Document(src.Data, "a mapping with repositories"); root != nil {
		r.root(root)
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return r.set, nil
}

// reader collects repositories.
type reader struct {
	in    *strictyaml.Reader
	set   *Set
	names map[string]int // of repositories, to their lines
}

func (r *reader) root(n *yaml.Node) {
	f := r.in.Fields(n, "the file", []string{"git_user", "repositories"})
	if u := f["git_user"]; u != nil {
		r.set.user = r.in.Like(u, "git_user", plainWord(), "the name of a user of this machine")
	}
	if f["repositories"] == nil {
		return
	}
	list := r.in.List(f["repositories"], "repositories")
	if len(list) > repositoriesMax {
		r.in.Wrong(n.Line, "%d repositories: want at most %d", len(list), repositoriesMax)
		return
	}
	for _, one := range list {
		r.repository(one)
	}
}

var keysOf = strings.Fields("name url branch path every event_source key known_hosts login_file " +
	"ca_file signers customers kinds empty")

func (r *reader) repository(n *yaml.Node) {
	f := r.in.Fields(n, "a repository", keysOf)
	if f == nil {
		return
	}
	one := Repository{Branch: "main", Every: everyUsual}
	one.Kinds = []string{manifest.Schedule, manifest.Window, manifest.Freeze}
	if name := r.need(f, n, "name"); name != nil {
		one.Name = r.in.Like(name, "name", plainWord(), "letters, digits, '.', '-' and '_'")
	}
	if one.Name != "" {
		if line, twice := r.names[one.Name]; twice {
			r.in.Wrong(n.Line, "repository %s is there already, at line %d: choose another name", one.Name,
				line)
		}
		r.names[one.Name] = n.Line
	}
	if u := r.need(f, n, "url"); u != nil {
		one.URL = r.url(u)
	}
	if b := f["branch"]; b != nil {
		one.Branch = r.branch(b)
	}
	if p := f["path"]; p != nil {
		one.Path = r.folder(p)
	}
	if e := f["every"]; e != nil {
		one.Every = r.in.Duration(e, "every", everyMin, everyMax)
	}
	if s := f["event_source"]; s != nil {
		one.From = r.in.Like(s, "event_source", plainWord(), "the name of a source of events")
	}
	for key, to := range map[string]*string{"key": &one.Key, "known_hosts": &one.KnownHosts,
		"login_file": &one.Login, "ca_file": &one.CA, "signers": &one.Signers} {
		if f[key] != nil {
			*to = r.path(f[key], key)
		}
	}
	r.limits(&one, f, n)
	r.way(one, n)
	r.set.list = append(r.set.list, one)
}

// limits reads what a branch may change.
func (r *reader) limits(one *Repository, f map[string]*yaml.Node, n *yaml.Node) {
	if c := r.need(f, n, "customers"); c != nil && (c.Kind != yaml.ScalarNode || c.Value != "all") {
		one.Customers = r.words(c, "customers", func(name string) string {
			if fleet.CheckName(name) != nil {
				return "want all, or names of customers"
			}
			return ""
		})
	}
	if k := f["kinds"]; k != nil {
		one.Kinds = r.words(k, "kinds", func(word string) string {
			if !slices.Contains(manifest.Kinds(), word) {
				return "want some of " + wording.Join(manifest.Kinds(), ", ")
			}
			return ""
		})
	}
	if e := f["empty"]; e != nil {
		one.Empty = r.in.Flag(e, "empty")
	}
}

// way looks whether a repository has what the way to it needs, and no more.
func (r *reader) way(one Repository, n *yaml.Node) {
	scheme, _, _ := strings.Cut(one.URL, "://")
	switch {
	case scheme == "ssh" && (one.Key == "" || one.KnownHosts == ""):
		r.in.Wrong(n.Line, "repository %s is reached over ssh: want key and known_hosts, with which git "+
			"proves itself and knows the server", one.Name)
	case scheme != "ssh" && scheme != "" && (one.Key != "" || one.KnownHosts != ""):
		r.in.Wrong(n.Line, "repository %s is not reached over ssh: key and known_hosts are for ssh only",
			one.Name)
	case scheme != "https" && scheme != "" && one.Login+one.CA != "":
		r.in.Wrong(n.Line, "repository %s is not reached over https: login_file and ca_file are for "+
			"https only", one.Name)
	}
}

func (r *reader) need(f map[string]*yaml.Node, n *yaml.Node, key string) *yaml.Node {
	if f[key] == nil {
		r.in.Wrong(n.Line, "a repository needs %s%s", key,
			map[string]string{"customers": ": want all, or a list of names"}[key])
	}
	return f[key]
}

var (
	plainWord = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
	plainPath = lazyregexp.New(`^[A-Za-z0-9_.@+/-]{1,500}$`)
	hostWord  = lazyregexp.New(`^([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)
)

// url reads an address. Git has ways to run programs by one, so it is read closely.
func (r *reader) url(n *yaml.Node) string {
	text, ok := r.in.Text(n, "url")
	if !ok {
		return ""
	}
	const want = "want https://host/path, ssh://user@host/path or file:///path"
	u, err := url.Parse(text)
	bad := ""
	switch {
	case err != nil || !slices.Contains([]string{"https", "ssh", "file"}, u.Scheme) || u.Opaque != "":
		bad = want
	case u.RawQuery != "" || u.Fragment != "" || !plainPath().MatchString(strings.ReplaceAll(u.Path,
		"~", "_")) || u.Path == "/" || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"):
		bad = "its path has more than letters, digits and . _ @ + - / ~"
	case u.Scheme == "file" && u.Host != "", u.Scheme != "file" && !hostWord().MatchString(u.Host):
		bad = want
	}
	if u != nil && u.User != nil {
		_, has := u.User.Password()
		if name := u.User.Username(); has || u.Scheme != "ssh" || !plainWord().MatchString(name) {
			r.in.Wrong(n.Line, "url: it has a user or a password in it: ssh takes a user, https a "+
				"login_file")
			return ""
		}
	}
	if bad != "" {
		r.in.Wrong(n.Line, "url: %s: %s", wording.Quote(text), bad)
		return ""
	}
	return text
}

func (r *reader) branch(n *yaml.Node) string {
	text := r.in.Like(n, "branch", plainPath(), "the name of a branch")
	for _, part := range strings.Split(text, "/") {
		if text != "" && (part == "" || part[0] == '.' || part[0] == '-' ||
			strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") ||
			strings.Contains(part, "..")) {
			r.in.Wrong(n.Line, "branch: %s: want the name of a branch, such as main", wording.Quote(text))
			return ""
		}
	}
	return text
}

// folder reads a folder of a repository.
func (r *reader) folder(n *yaml.Node) string {
	text := r.in.Like(n, "path", plainPath(), "a folder of the repository, such as conf/muster")
	if text != "" && (!filepath.IsLocal(text) || path.Clean(text) != text) {
		r.in.Wrong(n.Line, "path: %s: want a folder of the repository, such as conf/muster",
			wording.Quote(text))
	}
	if text == "." {
		return ""
	}
	return text
}

func (r *reader) path(n *yaml.Node, key string) string {
	text := r.in.Like(n, key, plainPath(),
		"the absolute path of a file, of letters, digits and _.@+-/")
	if text != "" && !filepath.IsAbs(text) {
		r.in.Wrong(n.Line, "%s: %s: want the absolute path of a file", key, wording.Quote(text))
	}
	return text
}

// words reads a list of different words, one at least.
func (r *reader) words(n *yaml.Node, key string, bad func(string) string) []string {
	list := []string{}
	for _, item := range r.in.Filled(n, key, "one at least") {
		text, ok := r.in.Text(item, key)
		switch {
		case !ok:
		case bad(text) != "":
			r.in.Wrong(item.Line, "%s: %s: %s", key, wording.Quote(text), bad(text))
		case slices.Contains(list, text):
			r.in.Wrong(item.Line, "%s: %s is there already", key, text)
		default:
			list = append(list, text)
		}
	}
	return list
}
