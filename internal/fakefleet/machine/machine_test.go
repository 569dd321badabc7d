package machine

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pretend() *Machine {
	return New(Config{Model: Models()[1], Name: "fw1", User: "root", DiskBytes: 1 << 20})
}

// content is an input that is known at the start.
type content struct{ rest []byte }

func (c *content) Read(_ <-chan struct{}, b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// capture keeps the output of a command.
type capture struct {
	mu   sync.Mutex
	kept []byte
}

func (c *capture) Write(_ <-chan struct{}, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, b...)
	return nil
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.kept)
}

// ran is the result of a script.
type ran struct {
	out, err string
	code     int
	signal   string
	timedOut bool
	took     time.Duration
}

func (m *Machine) script(t *testing.T, text, stdin string) ran {
	t.Helper()
	var out, stderr capture
	begun := time.Now()
	how := m.Run(t.Context(), Command{
		Line: text, In: &content{[]byte(stdin)}, Out: &out, Err: &stderr,
	})
	return ran{out.String(), stderr.String(), how.Code, how.Signal, how.TimedOut,
		time.Since(begun)}
}

// saying is a script with its expected output and errors.
type saying struct{ name, script, out, err string }

func check(t *testing.T, cases []saying) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := pretend().script(t, c.script, "")
			if d := cmp.Diff([]string{c.out, c.err}, []string{got.out, got.err}); d != "" {
				t.Errorf("%s\n(-want +got)\n%s", c.script, d)
			}
		})
	}
}

// Texts that an operator may try on a pretended host, and texts that package scripts needs.
func TestScriptsRunOnThePretendedDisk(t *testing.T) {
	check(t, []saying{
		{"redirections", `cd /tmp; echo a > f; echo b >> f; cat < f; nope 2>/tmp/e; cat e; echo c >/dev/null`,
			"a\nb\nsh: nope: not found\n", ""},
		{"a redirection that fails", `echo a > /nope/f; echo $?`, "1\n", "open /nope/f: No such file or directory\n"},
		{"test of files", `cd /tmp; touch a; [ -f a ] && [ ! -s a ] && [ ! -x a ] && chmod +x a && [ -x a ] && echo y`,
			"y\n", ""},
		{"owner", `[ -O /tmp ] && [ ! -O /nope ] && echo y`, "y\n", ""},
		{"patterns", `cd /tmp; touch a.x b.x; for f in *.x; do echo $f; done`, "a.x\nb.x\n", ""},
		{"wc", `seq 3 | wc -l; printf abc | wc -c; seq 2 > /tmp/f; wc -l /tmp/f`, "3\n3\n2 /tmp/f\n", ""},
		{"head", `printf abcdef | head -c 2; seq 9 | head -n 1; head -n x; head -n -1`, "ab1\n",
			"head: invalid number: 'x'\nhead: invalid number: '-1'\n"},
		{"directories", `mkdir /tmp/a/b; mkdir -p /tmp/a/b && cd /tmp/a && pwd; ls; rm b; rm -r /tmp/a; ls /tmp`,
			"/tmp/a\nb\n", "mkdir: cannot create directory '/tmp/a/b': No such file or directory\n" +
				"rm: cannot remove 'b': Is a directory\n"},
		{"moves", `cd /tmp; echo a > f; echo b > g; mv -f -- f g; cat g; mkdir d; mv g d; ls d; mv x y`, "a\ng\n",
			"mv: cannot move 'x' to 'y': No such file or directory\n"},
		{"directories move", `mkdir -p /tmp/a/b; touch /tmp/a/b/c; mv /tmp/a /tmp/z; ls /tmp/z/b; mv /tmp/z /tmp/z/y`,
			"c\n", "mv: cannot move '/tmp/z' to '/tmp/z/y': Invalid argument\n"},
		{"of the system", `cat /etc/hostname /etc/nope; echo x > /etc/os-release; cat /etc/os-release`, "fw1\nx\n",
			"cat: /etc/nope: No such file or directory\n"},
		{"cp", "cd /tmp; echo a >b; cp b c; echo d >>b; cat c b; cp gone e", "a\na\nd\n",
			"cp: cannot copy 'gone' to 'e': No such file or directory\n"},
		{"rmdir", "cd /tmp; mkdir a b; touch b/c; rmdir a; rmdir b a; ls", "b\n",
			"rmdir: failed to remove 'b': Directory not empty\n"},
		{"a descriptor above 2", "echo a 9>&-", "a\n", ""},
		{"a text without its tabs", "cat <<-E\n\ta\n\tE\n", "a\n", ""},
		{"read of a file", `echo 'a b c' >/tmp/f; read -r x y </tmp/f; echo "$y"`, "b c\n", ""},
		{"sh reads a file", `echo 'echo $1' > /tmp/s; sh /tmp/s x; sh /tmp/t`, "x\n",
			"sh: cannot open /tmp/t: No such file or directory\n"},
		{"sh -c with words", `sh -c 'echo "$1" $#' n 'a  b'; exec sh -c -- 'echo c'`, "a  b 1\nc\n", ""},
		{"command -v", "command -v sh; command -v gone || echo no", "sh\nno\n", ""},
		{"who", `hostname; id -un; id -u; id`, "fw1\nroot\n0\nuid=0(root) gid=0(root) groups=0(root)\n", ""},
		{"uname", `uname; uname -n; uname -sm; uname -z`, "Linux\nfw1\nLinux x86_64\n",
			"uname: invalid option -- '-z'\n"},
		{"flood", `flood 70 | wc -c; flood 64`, "70\n" + floodLine, ""},
		{"seq", `seq 2 3; seq x`, "2\n3\n", "seq: want one or two whole numbers\n"},
		{"wrong use of sleep", `sleep; sleep x; sleep -1; sleep nan`, "",
			"sleep: missing operand\nsleep: invalid time interval 'x'\n" +
				"sleep: invalid time interval '-1'\nsleep: invalid time interval 'nan'\n"},
		{"by path", `/bin/cat /etc/hostname; /opt/cat x`, "fw1\n", "sh: /opt/cat: not found\n"},
		{"a quote in a value", `a='x '\''y z'\'' w' b=c\ d; echo "$a" "$b"`, "x 'y z' w c d\n", ""},
		{"export", `export A=1; B=2; export B; sh -c 'echo $A$B'`, "12\n", ""},
		{"beyond it", "cat <(echo a)", "", "sh: <( ) is beyond a pretended machine\n"},
		{"not the language", "if then", "", "sh: 1:1: `if` must be followed by a statement list\n"},
	})
}

func TestHowCommandsEnd(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name, script string
		want         ran
	}{
		{"true", "true", ran{}},
		{"false", "false", ran{code: 1}},
		{"exit", "exit 3", ran{code: 3}},
		{"empty", "", ran{}},
		{"sleep", "sleep 0.5 1m", ran{took: 60*s + s/2}},
		{"in time", "exec timeout -k 5 300 sh -c 'sleep 2; echo hi; exit 3'", ran{out: "hi\n", code: 3, took: 2 * s}},
		{"at its bound", "exec timeout -k 5 300 sh -c 'echo a; sleep 400; echo b'",
			ran{out: "a\n", code: 124, timedOut: true, took: 300 * s}},
		{"bound 0 is none", "timeout 0 sleep 3600", ran{took: time.Hour}},
		{"killed at once", "exec timeout -s KILL 2 sleep 3", ran{signal: "KILL", timedOut: true, took: 2 * s}},
		{"the inner bound is hit", "timeout 10 sh -c 'timeout 2 sleep 20; echo $?; sleep 3'",
			ran{out: "124\n", timedOut: true, took: 5 * s}},
		{"the outer bound is hit", "timeout 2 sh -c 'timeout 10 sleep 20; echo $?'",
			ran{code: 124, timedOut: true, took: 2 * s}},
		{"a loop is bounded", "timeout 9 sh -c 'while true; do sleep 1; done'",
			ran{code: 124, timedOut: true, took: 9 * s}},
		{"a busy loop is bounded", "while true; do :; done", ran{signal: "KILL"}},
		{"the rest runs on", "sleep 3 & echo a; exit 5", ran{out: "a\n", code: 5, took: 3 * s}},
		{"the rest is not bounded", "timeout 2 sh -c 'sleep 3 & :'", ran{took: 3 * s}},
		{"a marked line", "timeout -k 5 9 sh -c 'exec 2>&1; echo N $$ $PPID; nope'",
			ran{out: "N 1003 1002\nsh: nope: not found\n", code: 127}},
		{"a packed line",
			`timeout -k 5 9 sh -c 'exec 2>&1; echo N $$ $PPID; exec sh -c "$(printf %b "$1")"' sh 'echo \0047!\0047'`,
			ran{out: "N 1003 1002\n!\n"}},
		{"wrong use of timeout", "timeout x true", ran{err: "timeout: invalid time interval 'x'\n", code: 125}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := pretend().script(t, c.script, "")
				if d := cmp.Diff(c.want, got, cmp.AllowUnexported(ran{})); d != "" {
					t.Errorf("%s (-want +got)\n%s", c.script, d)
				}
			})
		})
	}
}

func TestAFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	got := pretend().script(t, "flood 1000000 > /tmp/f; cat /tmp/f > /tmp/g", "")
	if got.code == 0 || got.err != "cat: /tmp/f: No space left on device\n" {
		t.Errorf("got %+v", got)
	}
}

// A process that setsid started continues when its group is ended.
func TestASessionOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pretend()
		defer m.Close()
		got := m.script(t, "timeout 5 sh -c 'setsid sh -c \"sleep 60; touch /tmp/b\" & sleep 100'; echo $?", "")
		if got.out != "124\n" || got.took > time.Minute {
			t.Errorf("%+v, want an end that does not wait for the session", got)
		}
		time.Sleep(time.Minute) // of the bubble: no time passes
		if got := m.script(t, "ls /tmp", ""); got.out != "b\n" {
			t.Errorf("the session said %+v", got)
		}
	})
}

func TestTimePassesOnAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pretend()
		before := m.uptimeNow()
		time.Sleep(time.Minute) // of the bubble: no time passes
		if after := m.uptimeNow(); after-before != 60 {
			t.Errorf("a minute later it is up %d s longer", after-before)
		}
	})
}
