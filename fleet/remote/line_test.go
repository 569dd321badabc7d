package remote

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// awkward are texts that one shell or another treats specially.
var awkward = []string{
	"plain words",
	"it's 'quoted' \"twice\"",
	"$HOME $(id) `id` ${x}",
	"history! !! !$",
	`back\slash \\ \n \' end\`,
	"new\nline\n\nlines\n",
	"tab\tand\rcarriage",
	"ümlaut 日本 \xff\xfe",
	"-oProxyCommand=reboot",
	"; rm -rf / & # %s %n * ? [a] {b,c} ~ = < > | ( )",
	"\x1b[31m\x01",
}

// Whichever login shell is installed, timeout and sh get exactly the text from the
// line.
func TestTheLineSurvivesEveryLoginShell(t *testing.T) {
	t.Parallel()
	for _, shell := range [][]string{
		{"sh"}, {"dash"}, {"bash"}, {"rbash"}, {"zsh"}, {"mksh"}, {"busybox", "sh"},
		{"csh"}, {"tcsh"}, {"fish"},
	} {
		path, err := exec.LookPath(shell[0])
		if err != nil {
			if shell[0] == "sh" {
				t.Fatal(err)
			}
			continue
		}
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			t.Parallel()
			for _, text := range awkward {
				line, err := remoteLine("printf '<%s>' "+quote(text)+" \"$0\"; exit 7", time.Minute, "N")
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(path, append(shell[1:], "-c", line)...)
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 7 {
					t.Errorf("%q: %v, want exit 7", text, err)
				}
				line, said, _ := strings.Cut(string(out), "\n")
				m, ok := parseMark([]byte(strings.TrimPrefix(line, "N")))
				if !ok || m.parent == m.shell {
					t.Errorf("the mark is %q", line)
				}
				if want := "<" + text + "><sh>"; said != want {
					t.Errorf("got %q, want %q", said, want)
				}
			}
		})
	}
}

func TestTheLineIsReadable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		bound time.Duration
		want  string
	}{
		{"uname -a", 5 * time.Minute, "timeout -k 5 300 sh -c 'exec 2>&1; echo N $$ $PPID; uname -a'"},
		{"echo 'a'", time.Second, `timeout -k 5 1 sh -c 'exec 2>&1; echo N $$ $PPID; echo '\''a'\'''`},
		{"true", 1500 * time.Millisecond, "timeout -k 5 2 sh -c 'exec 2>&1; echo N $$ $PPID; true'"},
		{"true", 1, "timeout -k 5 1 sh -c 'exec 2>&1; echo N $$ $PPID; true'"},
		{"-x", time.Second, "timeout -k 5 1 sh -c 'exec 2>&1; echo N $$ $PPID;  -x'"},
		{"+x", time.Second, "timeout -k 5 1 sh -c 'exec 2>&1; echo N $$ $PPID;  +x'"},
		{"a!", time.Second, `timeout -k 5 1 sh -c 'exec 2>&1; echo N $$ $PPID; exec sh -c "$(printf %b "$1")"' sh 'a\0041'`},
		{`a\`, time.Second, `timeout -k 5 1 sh -c 'exec 2>&1; echo N $$ $PPID; exec sh -c "$(printf %b "$1")"' sh 'a\0134'`},
		{"a\nb!'\\", time.Second,
			`timeout -k 5 1 sh -c 'exec 2>&1; echo N $$ $PPID; exec sh -c "$(printf %b "$1")"' sh 'a\0012b\0041\0047\0134'`},
	} {
		got, err := remoteLine(test.text, test.bound, "N")
		if err != nil || got != test.want {
			t.Errorf("%q for %s:\n got %s, %v\nwant %s", test.text, test.bound, got, err, test.want)
		}
	}
}

// Whatever the text, a shell finds in the line exactly the words that were meant,
// and nothing is run or expanded by the login shell.
func FuzzRemoteLine(f *testing.F) {
	for _, text := range awkward {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, err := remoteLine(text, time.Minute, "N")
		if err != nil {
			if !strings.Contains(text, "\x00") && strings.TrimSpace(text) != "" &&
				len(text) < lineMax/8 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		words := words(t, line)
		if strings.Join(words[:6], " ") != "timeout -k 5 60 sh -c" {
			t.Fatalf("the line runs %q", words)
		}
		got, ok := strings.CutPrefix(words[6], join+"N"+tell)
		if len(words) > 7 {
			ok = ok && got == unpack && words[7] == "sh" && len(words) == 9
			got = unescape(t, words[len(words)-1])
		}
		if !ok {
			t.Fatalf("the line runs %q", words)
		}
		if got != text && got != " "+text {
			t.Fatalf("got %q, want %q", got, text)
		}
	})
}

// words reads a line that must be one simple command without any expansion.
func words(t *testing.T, line string) []string {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if len(file.Stmts) != 1 {
		t.Fatalf("%q has %d commands", line, len(file.Stmts))
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(file.Stmts[0].Redirs) > 0 {
		t.Fatalf("%q is more than a command", line)
	}
	for i := range len(line) {
		if !visible(line[i]) {
			t.Fatalf("%q has a byte %q that a login shell may not like", line, line[i])
		}
	}
	fields, err := expand.Fields(&expand.Config{Env: expand.ListEnviron()}, call.Args...)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return fields
}

// unescape does what printf %b does for the escapes that we use.
func unescape(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if len(s) < i+5 || s[i+1] != '0' {
			t.Fatalf("bad escape at %d of %q", i, s)
		}
		b.WriteByte((s[i+2]-'0')<<6 | (s[i+3]-'0')<<3 | (s[i+4] - '0'))
		i += 4
	}
	return b.String()
}
