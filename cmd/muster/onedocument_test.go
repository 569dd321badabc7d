package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/ansible"
	"muster/internal/rehearse"
	"muster/internal/settings"
	"muster/scripts"
	"muster/windows"
)

// yamlReader reads one kind of YAML file; it comes with a text that it accepts.
type yamlReader struct {
	kind, good string
	read       func(file, text string) error // a warning is an error here
	aliases    bool                          // Ansible has aliases; their expansion is bounded
}

var yamlReaders = []yamlReader{
	{kind: "windows", good: "windows:\n- {name: a, customer: b, zone: UTC, start: '0 2 * * *', length: 1h}\n",
		read: func(file, text string) error {
			_, err := windows.Parse([]windows.File{{Name: file, Content: text}}, nil)
			return err
		}},
	{kind: "schedules", good: "schedules:\n- {name: a, cron: '@daily', zone: UTC, runbook: exec, on: all}\n",
		read: func(file, text string) error {
			_, err := windows.ParseSchedules([]windows.File{{Name: file, Content: text}}, nil)
			return err
		}},
	{kind: "inventory", good: "hosts:\n- {name: a, address: b, known_hosts: /k}\n",
		read: func(file, text string) error {
			_, err := fleet.Parse(fleet.Source{Name: file, Data: []byte(text)})
			return err
		}},
	{kind: "ansible inventory", good: "all:\n  hosts:\n    a: {ansible_host: 192.0.2.1, muster_known_hosts: /k}\n",
		aliases: true,
		read: func(file, text string) error {
			return readAnsible(ansible.Tree{Files: []ansible.File{{Name: file, Data: []byte(text)}}})
		}},
	{kind: "ansible variables", good: "ansible_host: 192.0.2.1\nmuster_known_hosts: /k\n", aliases: true,
		read: func(file, text string) error {
			return readAnsible(ansible.Tree{Files: []ansible.File{{Name: "hosts", Data: []byte("a\n")}},
				Vars: []ansible.VarsFile{{Path: "all.yml", File: ansible.File{Name: file, Data: []byte(text)}}}})
		}},
	{kind: "runbook", good: "name: a\nsteps:\n- {name: b, run: uptime}\n",
		read: func(file, text string) error { _, err := scripts.Parse(file, []byte(text)); return err }},
	{kind: "cases of a runbook", good: "cases:\n- {name: a, want: {outcome: succeeded}}\n",
		read: func(file, text string) error { _, err := rehearse.Parse(file, []byte(text)); return err }},
	{kind: "settings", good: "log:\n  level: info\n",
		read: func(file, text string) error {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return err
			}
			_, err := settings.Read(settings.Source{File: file})
			return err
		}},
}

func readAnsible(tree ansible.Tree) error {
	part := ansible.Read(tree, ansible.Options{})
	_, err := fleet.Join(part)
	if err == nil && len(part.Warnings) > 0 {
		return errors.New("warning: " + part.Warnings.Error())
	}
	return err
}

// A freeze, a host or a setting behind "---" once was ignored silently. Now each kind of file is
// refused, with its line.
func TestEveryFileOfYAMLIsOneDocument(t *testing.T) {
	t.Parallel()
	for _, r := range yamlReaders {
		t.Run(r.kind, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "f.yaml")
			for _, good := range []string{r.good, "---\n" + r.good, r.good + "...\n"} {
				if err := r.read(file, good); err != nil {
					t.Errorf("%q is refused: %v", good, err)
				}
			}
			line := strings.Count(r.good, "\n") + 1
			for _, more := range []string{"---\n" + r.good, "---\n", "---\n}{\n", "---\n[\n", "...\n}{\n"} {
				err := r.read(file, r.good+more)
				if err == nil || !saysLine(err.Error(), line, line+3) {
					t.Errorf("%q behind the document: want an error at line %d or just below, got %v", more, line, err)
				}
			}
		})
	}
}

// saysLine reports whether a text names a line of f.yaml within bounds.
func saysLine(text string, from, to int) bool {
	for line := from; line <= to; line++ {
		if strings.Contains(text, fmt.Sprintf("f.yaml:%d:", line)) {
			return true
		}
	}
	return false
}

func TestNoFileOfYAMLTakesAKeyTwiceOrUnknown(t *testing.T) {
	t.Parallel()
	for _, r := range yamlReaders {
		t.Run(r.kind, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "f.yaml")
			line := strings.Count(r.good, "\n") + 1
			first, _, _ := strings.Cut(r.good, ":")
			for _, more := range []string{first + ": []\n", "nobody_knows_this: 3\n"} {
				if r.kind == "ansible variables" && strings.HasPrefix(more, "nobody") {
					continue // variables of playbooks are not read
				}
				err := r.read(file, r.good+more)
				if err == nil || !saysLine(err.Error(), line, line) {
					t.Errorf("%q: want an error at line %d, got %v", more, line, err)
				}
			}
		})
	}
}

// A text of some hundred bytes can stand for 10^9 values, if aliases are followed.
func TestNoFileOfYAMLIsMadeEndlessByAliases(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9))
	}
	for _, r := range yamlReaders {
		t.Run(r.kind, func(t *testing.T) {
			t.Parallel()
			file, began := filepath.Join(t.TempDir(), "f.yaml"), time.Now()
			err := r.read(file, bomb.String()+r.good)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			if err == nil && !r.aliases {
				t.Error("a file with aliases is taken")
			}
		})
	}
}
