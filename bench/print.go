package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
)

// table is all that was measured.
type table struct {
	Machine  machine `json:"machine"`
	Sections []part  `json:"sections"`

	wanted []string
}

// part is a section of the table.
type part struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Rows  []row  `json:"rows"`
}

func (t *table) add(s section, rows []row) {
	t.Sections = append(t.Sections, part{s.name, s.about, rows})
}

// machine is what the figures depend on.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Go     string `json:"go"`
	Redis  string `json:"redis"`
	Asynq  string `json:"asynq"`
	Rounds int    `json:"rounds"`
	Short  bool   `json:"short"` // not to be taken for figures
	Calm   calm   `json:"calm"`
}

func aboutMachine(o *options) machine {
	m := machine{CPU: cpuName(), Cores: runtime.NumCPU(), System: kernel(), Go: runtime.Version(),
		Asynq: moduleVersion("github.com/hibiken/asynq"), Rounds: o.rounds, Short: o.small}
	m.Redis = o.redis.version
	return m
}

func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace("Linux " + string(text))
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return d.Version
			}
		}
	}
	return "unknown"
}

func (m machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s; %s, Redis %s (append-only file, everysec), asynq %s; "+
		"%d rounds", m.CPU, m.Cores, m.System, m.Go, m.Redis, m.Asynq, m.Rounds)
	s += "; " + m.Calm.words(m.Cores)
	if m.Short {
		s += "; a short run: no figures to keep"
	}
	return s
}

// printers are the forms of the table.
var printers = map[string]func(io.Writer, table) error{
	"table":    printTable,
	"markdown": printMarkdown,
	"json": func(w io.Writer, t table) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(t)
	},
}

func printTable(w io.Writer, t table) error {
	fmt.Fprintf(w, "%s\n", t.Machine)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "\n\tmedian\tlowest–highest\tratio\ttarget\t")
	for _, p := range t.Sections {
		fmt.Fprintf(tw, "%s: %s\t\t\t\t\t\n", p.Name, p.About)
		for _, r := range p.Rows {
			fmt.Fprintf(tw, "  %s\n", strings.Join(r.cells(), "\t"))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n"+t.verdict())
	return err
}

func printMarkdown(w io.Writer, t table) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", t.Machine)
	for _, p := range t.Sections {
		fmt.Fprintf(&b, "\n### %s: %s\n\n", p.Name, p.About)
		b.WriteString("| | median | lowest–highest | ratio | target | |\n")
		b.WriteString("|---|---:|---:|---:|---|---|\n")
		for _, r := range p.Rows {
			cells := r.cells()
			if r.Result == missed {
				cells[len(cells)-1] = "**missed**"
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	fmt.Fprintf(&b, "\n%s\n", t.verdict())
	_, err := io.WriteString(w, b.String())
	return err
}

// cells are the columns of a row.
func (r row) cells() []string {
	ratio := ""
	if r.Peer != "" {
		ratio = fmt.Sprintf("%s × %s", number(r.Ratio), r.Peer)
	}
	spread := fmt.Sprintf("%s–%s", number(r.Lowest), number(r.Highest))
	if r.Samples == 1 {
		spread = ""
	}
	return []string{r.Figure, number(r.Median) + " " + r.Unit, spread, ratio, r.Target, r.Result}
}

// verdict counts the targets.
func (t table) verdict() string {
	count := map[string]int{}
	var not []string
	for _, p := range t.Sections {
		for _, r := range p.Rows {
			count[r.Result]++
			if r.Result == missed {
				not = append(not, p.Name+": "+r.Figure)
			}
		}
	}
	s := fmt.Sprintf("%d targets met, %d missed", count[met], count[missed])
	if len(not) > 0 {
		s += " (" + strings.Join(not, "; ") + ")"
	}
	return s + "."
}
