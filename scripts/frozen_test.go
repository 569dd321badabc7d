package scripts_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/fleet"
	"muster/scripts"
)

func frozenGood(t testing.TB) scripts.Frozen {
	t.Helper()
	r := mustParse(t, good)
	v, err := r.Bind(map[string]string{"how": "reload"}, map[string][]byte{"config": []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	return r.Freeze(v)
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func TestStepsOfAFrozenRunbook(t *testing.T) {
	t.Parallel()
	f := frozenGood(t)
	const motd = "made by hand\n"
	want := []scripts.Action{{
		Kind: scripts.KindUpload, Name: "bring", Timeout: 2 * time.Minute, Repeatable: true, Disruptive: true,
		Upload: &scripts.Upload{
			To: "/etc/httpd/new.conf", Mode: 0o600, SHA256: sum("x"), Size: 1, Content: []byte("x"),
		},
	}, {
		Kind: scripts.KindRun, Name: "use", Timeout: 30 * time.Second, Disruptive: true,
		Shell: "mv /etc/'httpd'/new.conf /etc/'httpd'/main.conf\nsystemctl 'reload' 'httpd'\n",
	}, {
		Kind: scripts.KindUpload, Name: "note", Timeout: 2 * time.Minute, Repeatable: true, Disruptive: true,
		Upload: &scripts.Upload{
			To: "/etc/motd", Mode: 0o644, SHA256: sum(motd), Size: int64(len(motd)), Content: []byte(motd),
		},
	}}
	for i := range want {
		got, err := f.Step(i, fleet.Host{Name: "a"}, scripts.Context{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("step %d: -want +got:\n%s", i, diff)
		}
	}
}

func TestStepRefusesWhatItCannotMake(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		step   int
		change func(f *scripts.Frozen)
		want   string
	}{
		{"before the first", -1, func(*scripts.Frozen) {}, "runbook push-config: no step -1, only 3"},
		{"after the last", 3, func(*scripts.Frozen) {}, "no step 3, only 3"},
		{"a kind of tomorrow", 1, func(f *scripts.Frozen) { f.Steps[1].Kind = "reboot" },
			`step "use": kind "reboot" is not known here: a newer muster made the task`},
		{"no upload", 0, func(f *scripts.Frozen) { f.Steps[0].Upload = nil }, "the upload is empty"},
		{"no argument", 1, func(f *scripts.Frozen) { delete(f.Values.Args, "how") },
			"{{how}}: no such argument"},
		{"no content", 0, func(f *scripts.Frozen) { f.Values.Files = nil },
			`the content of file "config" is not in the task`},
		{"a way out of the folder", 0, func(f *scripts.Frozen) {
			f.Values.Args["service"] = "../../root"
		}, `to: path "/etc/../../root/new.conf": want an absolute one`},
		{"a line break in the path", 0, func(f *scripts.Frozen) {
			f.Values.Args["service"] = "a\nb"
		}, `has a control character`},
		{"NUL", 1, func(f *scripts.Frozen) { f.Values.Args["how"] = "a\x00" }, "NUL character"},
		{"a broken placeholder", 1, func(f *scripts.Frozen) { f.Steps[1].Run = "ls {{" },
			`at byte 3: no placeholder follows "{{"`},
		{"too much", 1, func(f *scripts.Frozen) {
			f.Values.Args["how"] = strings.Repeat("x", 64<<10)
			f.Steps[1].Run = strings.Repeat("echo {{how}}\n", 17)
		}, "more than 1048576 bytes with its values"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := frozenGood(t)
			test.change(&f)
			a, err := f.Step(test.step, fleet.Host{Name: "a"}, scripts.Context{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v; want %s", a, err, test.want)
			}
		})
	}
}

func TestCheckReportsEveryStep(t *testing.T) {
	t.Parallel()
	r := mustParse(t, "name: a\nsteps:\n- {name: b, run: 'echo {{host.label.x}}'}\n- {name: c, run: ls}\n"+
		"- {name: d, upload: {content: e, to: '/{{host.label.y}}'}}\n")
	f := r.Freeze(scripts.Values{})
	err := f.Check(fleet.Host{Name: "h"})
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), `"d"`) {
		t.Errorf("got %v: want one line for b and one for d", err)
	}
	if err := f.Check(fleet.Host{Name: "h", Labels: map[string]string{"x": "", "y": "z"}}); err != nil {
		t.Errorf("a host with both labels: %v", err)
	}
}

// The form in Redis: to change it is to break the tasks that are under way.
func TestFrozenFormDoesNotChange(t *testing.T) {
	t.Parallel()
	f := frozenGood(t)
	f.Hash, f.Steps = "H", f.Steps[:2]
	got, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "runbook": "push-config",
 "version": "1.2",
 "hash": "H",
 "disruptive": true,
 "needs": [
  "mirror/fw-images",
  "site/zrh1"
 ],
 "timeout_ns": 120000000000,
 "retry": {
  "submit": 5,
  "delay_ns": 10000000000
 },
 "steps": [
  {
   "name": "bring",
   "kind": "upload",
   "upload": {
    "from": "config",
    "to": "/etc/{{service}}/new.conf",
    "mode": 384
   },
   "timeout_ns": 120000000000,
   "repeatable": true,
   "disruptive": true
  },
  {
   "name": "use",
   "kind": "run",
   "run": "mv /etc/{{service}}/new.conf /etc/{{service}}/main.conf\nsystemctl {{how}} {{service}}\n",
   "timeout_ns": 30000000000,
   "disruptive": true
  }
 ],
 "main": 3,
 "values": {
  "args": {
   "config": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
   "force": "false",
   "how": "reload",
   "pause": "90",
   "service": "httpd",
   "tries": "3"
  },
  "files": {
   "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881": "eA=="
  }
 },
 "window": true,
 "expect_ns": 20000000000,
 "reserve_ns": 60000000000
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFrozenRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"runbook":"a","when":"tomorrow"}`,
		`{"steps":[{"name":"a","kind":"run","run":"ls","when":["a == b"]}]}`,
		`{"steps":[{"timeout_ns":"5m"}]}`,
		`[]`,
	} {
		var f scripts.Frozen
		err := json.Unmarshal([]byte(text), &f)
		if err == nil || !strings.Contains(err.Error(), "another version of muster") {
			t.Errorf("%s: got %v, want it refused", text, err)
		}
	}
}

func TestFrozenRefusesAChangedFile(t *testing.T) {
	t.Parallel()
	f := frozenGood(t)
	f.Values.Files[f.Values.Args["config"]] = []byte("y")
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	err = json.Unmarshal(data, &f)
	if err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v: want the file refused", err)
	}
}

func anyFrozen() *rapid.Generator[scripts.Frozen] {
	text := rapid.String()
	step := rapid.Custom(func(t *rapid.T) scripts.Step {
		s := scripts.Step{
			Name: text.Draw(t, "name"), Kind: scripts.KindRun, Run: text.Draw(t, "run"),
			Timeout:    time.Duration(rapid.Int64().Draw(t, "timeout")),
			Repeatable: rapid.Bool().Draw(t, "repeatable"),
		}
		if rapid.Bool().Draw(t, "upload") {
			s.Kind, s.Run = scripts.KindUpload, ""
			s.Upload = &scripts.UploadSpec{
				From: text.Draw(t, "from"), Content: text.Draw(t, "content"), To: text.Draw(t, "to"),
				Mode: rapid.Uint32().Draw(t, "mode"),
			}
		}
		return s
	})
	content := rapid.SliceOfN(rapid.Byte(), 0, 50)
	return rapid.Custom(func(t *rapid.T) scripts.Frozen {
		f := scripts.Frozen{
			Runbook: text.Draw(t, "runbook"), Version: text.Draw(t, "version"), Hash: text.Draw(t, "hash"),
			Disruptive: rapid.Bool().Draw(t, "disruptive"),
			Repeatable: rapid.Bool().Draw(t, "repeatable"),
			Timeout:    time.Duration(rapid.Int64().Draw(t, "timeout")),
			Timing: scripts.Timing{
				Window:  rapid.Bool().Draw(t, "window"),
				Expect:  time.Duration(rapid.Int64().Draw(t, "expect")),
				Reserve: time.Duration(rapid.Int64().Draw(t, "reserve")),
			},
			Retry:  scripts.Retry{Submit: rapid.Int().Draw(t, "submit"), Delay: time.Second},
			Steps:  rapid.SliceOfN(step, 1, 4).Draw(t, "steps"),
			Values: scripts.Values{Args: rapid.MapOfN(text, text, 0, 4).Draw(t, "args")},
		}
		if rapid.Bool().Draw(t, "files") {
			f.Values.Files = rapid.MapOfNValues(content, 1, 3, func(content []byte) string {
				return sum(string(content))
			}).Draw(t, "contents")
		}
		return f
	})
}

func TestFrozenGoesThroughJSONUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyFrozen().Draw(t, "frozen")
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got scripts.Frozen
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

func TestWhatBindMakesGoesThroughJSONUnchanged(t *testing.T) {
	t.Parallel()
	r := mustParse(t, good)
	for _, content := range [][]byte{nil, {}, []byte("\x00\xff")} {
		v, err := r.Bind(map[string]string{"how": "reload"}, map[string][]byte{"config": content})
		if err != nil {
			t.Fatal(err)
		}
		want := r.Freeze(v)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got scripts.Frozen
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("content %q: -want +got:\n%s", content, diff)
		}
		if _, err := got.Step(0, fleet.Host{}, scripts.Context{}); err != nil {
			t.Errorf("content %q: %v", content, err)
		}
	}
}

func FuzzFrozen(f *testing.F) {
	data, err := json.Marshal(frozenGood(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"steps":[{"kind":"upload"},{"kind":"run","run":"{{host.label.a}}"},{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var frozen scripts.Frozen
		if json.Unmarshal(data, &frozen) != nil {
			return
		}
		if err := frozen.Check(fleet.Host{Name: "a"}); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
