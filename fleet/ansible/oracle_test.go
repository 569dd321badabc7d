package ansible

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// seen is an inventory in terms that both Ansible and this package can report.
type seen struct {
	Groups map[string][]string       // group → its hosts, including those of child groups
	Vars   map[string]map[string]any // host → variables, as JSON values
}

// ours reads a folder with this package.
func ours(t *rapid.T, dir string, files []string) seen {
	var tree Tree
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f := File{Name: name, Data: data}
		if folder, path, below := strings.Cut(name, "/"); below {
			tree.Vars = append(tree.Vars, VarsFile{folder == "host_vars", path, f})
		} else {
			tree.Files = append(tree.Files, f)
		}
	}
	r := read(tree)
	if len(r.mistakes) > 0 {
		t.Fatal(r.mistakes)
	}
	s := seen{map[string][]string{}, map[string]map[string]any{}}
	for _, h := range r.order {
		groups := r.groupsOf(h)
		for _, g := range groups {
			s.Groups[g.name] = append(s.Groups[g.name], h.name)
		}
		vars := map[string]any{}
		for key, v := range r.inherited(groups) {
			vars[key] = value(t, v.node)
		}
		for key, v := range h.vars {
			vars[key] = value(t, v.node)
		}
		for key, v := range h.files {
			vars[key] = value(t, v.node)
		}
		s.Vars[h.name] = vars
	}
	return s.sorted()
}

// value converts a node to the value that JSON has for it.
func value(t *rapid.T, n *yaml.Node) any {
	var v any
	if n.Tag == "!!null" {
		return nil
	}
	err := n.Decode(&v)
	if n.Tag == "!!float" {
		v, err = strconv.ParseFloat(n.Value, 64)
	}
	data, jsonErr := json.Marshal(v)
	if err != nil || jsonErr != nil {
		t.Fatal(n.Value, err, jsonErr)
	}
	_ = json.Unmarshal(data, &v)
	return v
}

// theirs runs ansible-inventory on a folder.
func theirs(t *rapid.T, inventory string) (s seen, list []byte) {
	cfg := filepath.Join(filepath.Dir(inventory), "ansible.cfg")
	if err := os.WriteFile(cfg, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ansible-inventory", "-i", inventory, "--list")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(inventory), "LC_ALL=C.UTF-8",
		"ANSIBLE_CONFIG=" + cfg, "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=1"}
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, cmd.Stderr)
	}
	var groups map[string]struct {
		Hosts    []string
		Children []string
	}
	var meta struct {
		Meta struct{ Hostvars map[string]map[string]any } `json:"_meta"`
	}
	if err := json.Unmarshal(list, &groups); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(list, &meta); err != nil {
		t.Fatal(err)
	}
	s = seen{map[string][]string{}, meta.Meta.Hostvars}
	var members func(name string) []string
	members = func(name string) []string {
		all := slices.Clone(groups[name].Hosts)
		for _, c := range groups[name].Children {
			all = append(all, members(c)...)
		}
		return all
	}
	for name := range groups {
		if name != "all" && name != "_meta" {
			s.Groups[name] = members(name)
		}
	}
	for _, h := range members("all") {
		if s.Vars[h] == nil { // ansible-inventory leaves out hosts without variables
			s.Vars[h] = map[string]any{}
		}
	}
	return s.sorted(), list
}

func (s seen) sorted() seen {
	for name, hosts := range s.Groups {
		slices.Sort(hosts)
		if s.Groups[name] = slices.Compact(hosts); len(hosts) == 0 {
			delete(s.Groups, name)
		}
	}
	return s
}

// sketch is an inventory that the test can write in every form.
type sketch struct {
	groups   []string
	children map[string][]string          // group → later groups
	hosts    map[string][]string          // group → host patterns
	vars     map[string]map[string]string // group or host → variables, as literals that all forms share
	priority map[string]int
}

func drawSketch(t *rapid.T) sketch {
	s := sketch{children: map[string][]string{}, hosts: map[string][]string{},
		vars: map[string]map[string]string{}, priority: map[string]int{}}
	n := rapid.IntRange(1, 7).Draw(t, "groups")
	for i := range n {
		s.groups = append(s.groups, fmt.Sprintf("%s%d",
			rapid.SampledFrom([]string{"web", "db", "Zrh", "edge-fw", "a_b"}).Draw(t, "group"), i))
	}
	for i, g := range s.groups {
		for _, c := range s.groups[i+1:] {
			if rapid.IntRange(0, 2).Draw(t, "child") == 0 {
				s.children[g] = append(s.children[g], c)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "priority") == 0 {
			s.priority[g] = rapid.IntRange(-2, 12).Draw(t, "of")
		}
	}
	patterns := []string{"fw[1:3]", "fw[01:05:2]", "fw[a:d].example.com", "n[0:1]x[08:10]", "one",
		"two:2222", "fw[2:4]:2022", "192.0.2.7", "h[X:Z:2]"}
	for _, g := range append([]string{"ungrouped"}, s.groups...) {
		for range rapid.IntRange(0, 3).Draw(t, "hosts") {
			p := rapid.SampledFrom(patterns).Draw(t, "pattern")
			if !slices.Contains(s.hosts[g], p) {
				s.hosts[g] = append(s.hosts[g], p)
			}
		}
		s.vars[g] = drawVars(t)
	}
	s.vars["all"] = drawVars(t)
	for _, p := range patterns {
		s.vars["host "+p] = drawVars(t)
	}
	return s
}

func drawVars(t *rapid.T) map[string]string {
	keys := []string{"x", "y", "z", "ansible_host", "ansible_user", "muster_customer"}
	values := []string{"plain", `"two words"`, "12", "-5", "true", "1.5", `"007"`, `"#no"`, "192.0.2.1", `""`}
	vars := map[string]string{}
	for range rapid.IntRange(0, 4).Draw(t, "vars") {
		vars[rapid.SampledFrom(keys).Draw(t, "key")] = rapid.SampledFrom(values).Draw(t, "value")
	}
	return vars
}

// ini writes a sketch in INI form. It quotes words that the two readers would otherwise
// read differently.
func (s sketch) ini() string {
	var b strings.Builder
	literal := func(v string) string {
		if v == "true" {
			return "True"
		}
		return v
	}
	inline := func(vars map[string]string) {
		for key, v := range vars {
			if v = literal(v); v[0] == '"' {
				v = `'` + v + `'`
			}
			fmt.Fprintf(&b, " %s=%s", key, v)
		}
		b.WriteString("   # a comment\n")
	}
	section := func(g string) {
		for _, p := range s.hosts[g] {
			b.WriteString(p)
			inline(s.vars["host "+p])
		}
	}
	b.WriteString("; an inventory\n")
	section("ungrouped")
	for _, g := range slices.Backward(s.groups) {
		fmt.Fprintf(&b, "\n[%s]  # hosts\n", g)
		section(g)
		fmt.Fprintf(&b, "[%s:vars]\n", g)
		for key, v := range s.vars[g] {
			fmt.Fprintf(&b, "%s = %s\n", key, literal(v))
		}
		if p, ok := s.priority[g]; ok {
			fmt.Fprintf(&b, "ansible_group_priority=%d\n", p)
		}
		fmt.Fprintf(&b, "[%s:children]\n%s\n", g, strings.Join(s.children[g], "\n"))
	}
	for _, g := range []string{"all", "ungrouped"} {
		fmt.Fprintf(&b, "[%s:vars]\n", g)
		for key, v := range s.vars[g] {
			fmt.Fprintf(&b, "%s=%s\n", key, literal(v))
		}
	}
	return b.String()
}

// yaml writes a sketch in YAML form, with groups nested where possible.
func (s sketch) yaml() string {
	group := func(name string) map[string]any {
		g := map[string]any{}
		hosts, vars, children := map[string]any{}, map[string]any{}, map[string]any{}
		for _, p := range s.hosts[name] {
			hosts[p] = nil
			if own := s.vars["host "+p]; len(own) > 0 {
				hosts[p] = own
			}
		}
		for key, v := range s.vars[name] {
			vars[key] = v
		}
		if p, ok := s.priority[name]; ok {
			vars["ansible_group_priority"] = strconv.Itoa(p)
		}
		for _, c := range s.children[name] {
			children[c] = nil
		}
		for part, m := range map[string]map[string]any{"hosts": hosts, "vars": vars, "children": children} {
			if len(m) > 0 {
				g[part] = m
			}
		}
		return g
	}
	top := map[string]any{}
	for _, g := range append([]string{"all", "ungrouped"}, s.groups...) {
		top[g] = group(g)
	}
	var doc yaml.Node
	if err := doc.Encode(top); err != nil {
		return err.Error()
	}
	unquote(&doc)
	data, err := yaml.Marshal(&doc)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// unquote replaces literals, which are strings so far, by their values.
func unquote(n *yaml.Node) {
	for _, c := range n.Content {
		unquote(c)
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return
	}
	var v yaml.Node
	if yaml.Unmarshal([]byte(n.Value), &v) == nil && len(v.Content) == 1 && v.Content[0].Kind == yaml.ScalarNode {
		*n = *v.Content[0]
	}
}

// varsFiles writes variables of groups and hosts to files beside the inventory.
func drawVarsFiles(t *rapid.T, s sketch) map[string]string {
	names := []string{"group_vars/all", "group_vars/all/x.yml", "host_vars/one.yml", "host_vars/fw1"}
	for _, g := range s.groups {
		names = append(names, "group_vars/"+g+".yml", "group_vars/"+g+"/b.yaml", "group_vars/"+g+"/a")
	}
	files := map[string]string{}
	for range rapid.IntRange(0, 4).Draw(t, "files") {
		name := rapid.SampledFrom(names).Draw(t, "file")
		var b strings.Builder
		b.WriteString("---\n")
		for key, v := range drawVars(t) {
			fmt.Fprintf(&b, "%s: %s\n", key, v)
		}
		files[name] = b.String()
	}
	for name := range files { // a file cannot be a folder as well
		if dir, _, deep := strings.Cut(strings.TrimPrefix(name, "group_vars/"), "/"); deep {
			delete(files, "group_vars/"+dir)
		}
	}
	return files
}

// TestAgainstAnsible compares this package with Ansible on random inventories. It also reads
// back the output of Ansible, which must give the same result.
func TestAgainstAnsible(t *testing.T) {
	if _, err := exec.LookPath("ansible-inventory"); err != nil {
		t.Skip("ansible-inventory is not installed: tools/install.sh ansible")
	}
	t.Parallel()
	left := 12 // each call takes more than half a second, and shrinking a failure needs many
	rapid.Check(t, func(t *rapid.T) {
		if left--; left < 0 {
			return
		}
		dir, err := os.MkdirTemp("", "inventory")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := drawSketch(t)
		name, text := "hosts", s.ini()
		if rapid.Bool().Draw(t, "yaml") {
			name, text = "hosts.yml", s.yaml()
		}
		files := map[string]string{name: text}
		for name, text := range drawVarsFiles(t, s) {
			files[name] = text
		}
		var names []string
		for name, text := range files {
			names = append(names, name)
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(names)
		got := ours(t, dir, names)
		want, list := theirs(t, filepath.Join(dir, name))
		if diff := cmp.Diff(want, got); diff != "" {
			left = max(left, 20)
			t.Fatalf("%v\nAnsible (-) and we (+) differ:\n%s", files, diff)
		}
		if err := os.WriteFile(filepath.Join(dir, "list.json"), list, 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ours(t, dir, []string{"list.json"})); diff != "" {
			t.Fatalf("read back, %s\ndiffers:\n%s", list, diff)
		}
	})
}
