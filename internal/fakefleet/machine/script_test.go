package machine

import (
	"io"
	"strings"
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

// ran is what came of a script.
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
	return ran{string(out.kept), string(stderr.kept), how.Code, how.Signal, how.TimedOut,
		time.Since(begun)}
}

// saying is a script, what it prints, and what it complains about.
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

func TestWords(t *testing.T) {
	check(t, []saying{
		{"echo", `echo a  "b  c" 'd $x'`, "a b  c d $x\n", ""},
		{"echo reads escapes", `echo -n a; echo 'b\tc'`, "ab\tc\n", ""},
		{"quotes", `echo "a\"b\$c\d" e\ f 'g'\''h'`, "a\"b$c\\d e f g'h\n", ""},
		{"printf", `printf '%s=%d\n' a 1 b 0x10; printf '%%%b%c%x' 'x\n' yz 255`, "a=1\nb=16\n%x\nyff", ""},
		{"printf reads octal", `printf 'a\1012\n'; printf %b '\0101\0041'`, "aA2\nA!", ""},
		{"printf lacks a verb", `printf %q x; echo $?`, "1\n", "printf: %q: invalid directive\n"},
		{"defaults", `y=; echo ${y:-c} ${y-d} ${z:-e} ${z-f} ${x:+g}${z+h}.`, "c e f .\n", ""},
		{"blanks", `x='a  b'; echo $x "$x" ${x}`, "a b a  b a b\n", ""},
		{"positions", `sh -c 'echo $0 $# "$1" $2; for a in "$@"; do echo "<$a>"; done' n 'a b' c`,
			"n 2 a b c\n<a b>\n<c>\n", ""},
		{"empty words", `x=; sh -c 'echo $#' n $x "$x" '' "$@"`, "2\n", ""},
		{"substitution", `x=$(echo a; echo b; exit 4); echo $? "$x" $(echo c d)`, "4 a\nb c d\n", ""},
		{"an assignment sees $?", `false; x=$?; echo $x $?`, "1 0\n", ""},
		{"for one command", `x=1; x=2 sh -c 'echo $x'; echo $x`, "2\n1\n", ""},
		{"env", `env x=1 sh -c 'echo $x'; export y=2; echo $y`, "1\n2\n", ""},
	})
}

func TestFlow(t *testing.T) {
	check(t, []saying{
		{"and, or", `true && echo a || echo b; false && echo c || echo d; ! true || echo e`, "a\nd\ne\n", ""},
		{"exit", `echo a; exit 0; echo b`, "a\n", ""},
		{"exec", `exec echo a; echo b`, "a\n", ""},
		{"exec keeps redirections", `exec 2>&1 >/tmp/f; echo a; nope; sh -c 'cat /tmp/f >&2'`,
			"sh: nope: not found\na\n", ""},
		{"block", `{ echo a; echo b >&2; } 2>&1`, "a\nb\n", ""},
		{"subshell", `x=1; (x=2; exit 3); echo $? $x`, "3 1\n", ""},
		{"if", `if false; then echo a; elif true; then echo b; else echo c; fi; if false; then :; fi; echo $?`, "b\n0\n", ""},
		{"for", `for i in a b; do echo $i; done; set -- c; for i; do echo $i; done`, "a\nb\nc\n", ""},
		{"while, until", `x=go; while [ $x = go ]; do x=no; false; done; echo $x $?; until true; do :; done`, "no 1\n", ""},
		{"pipe", `seq 3 | head -n 2 | cat; false | true; echo $?`, "1\n2\n0\n", ""},
		{"a closed pipe ends yes", `yes | head -n 2; echo on`, "y\ny\non\n", ""},
		{"set -e", `set -e; false || true; if false; then :; fi; ! true; echo a; false; echo b`, "a\n", ""},
		{"unknown", `nmap -v; echo $?; /opt/echo c`, "127\n", "sh: nmap: not found\nsh: /opt/echo: not found\n"},
		{"by path", `/bin/echo a; /usr/bin/true && echo b`, "a\nb\n", ""},
		{"trap at exit", `trap 'echo a $?' EXIT; (echo b); exit 3`, "b\na 3\n", ""},
		{"sh reads stdin", "sh -s a <<'E'\necho $1\nE\n", "a\n", ""},
		{"sh reads a file", `echo 'echo $0 $1' > /tmp/s; sh /tmp/s x; sh /tmp/t`, "/tmp/s x\n",
			"sh: cannot open /tmp/t: No such file or directory\n"},
		{"unpacked", `sh -c 'exec 2>&1; exec sh -c "$(printf %b "$1")"' sh 'echo a\0041\0012nope'`,
			"a!\nsh: nope: not found\n", ""},
		{"here-documents", "x=1; cat <<E\n$x \\$x\nE\ncat <<'E'\n$x \\$x\nE\n", "1 $x\n$x \\$x\n", ""},
		{"functions", `f() { echo "$0 $1 $#"; false; }; set -- x; f a b || echo no; echo $1`, "sh a 2\nno\nx\n", ""},
		{"a function exits", `f() { exit 3; }; f; echo on`, "", ""},
		{"case", `for x in ab '*' 'a b' ''; do case $x in a?) echo 1;; "*") echo 2;; ''|[z]) echo 3;; *) echo 4;; esac; done`,
			"1\n2\n4\n3\n", ""},
		{"read", `seq 2 | { read a; read b; echo $a$b; }; echo ' x  y z ' | { read -r a b; echo "$a.$b"; }; read c`,
			"12\nx.y z\n", ""},
		{"read in a loop", `printf '1 a\n2 b\n3' | while read n w; do echo $w$n; done`, "a1\nb2\n", ""},
		{"128 and more", `timeout -s KILL 0.001 sleep 9; echo $?; timeout 0.001 sleep 9; echo $?`, "137\n124\n", ""},
	})
}

func TestFiles(t *testing.T) {
	check(t, []saying{
		{"redirections", `cd /tmp; echo a > f; echo b >> f; cat < f; nope 2>/tmp/e; cat e; echo c >/dev/null`,
			"a\nb\nsh: nope: not found\n", ""},
		{"a redirection that fails", `echo a > /nope/f; echo $?`, "2\n",
			"sh: cannot create /nope/f: No such file or directory\n"},
		{"noclobber", `set -C; echo a > /tmp/f; echo b > /tmp/f; echo c >> /tmp/f; cat /tmp/f`, "a\nc\n",
			"sh: cannot create /tmp/f: File exists\n"},
		{"test", `[ a = a ] && [ ! a = b ] && test 2 -gt 1 && [ -z "" ] && [ -d /tmp ] && echo y; [ 1 -eq x ]; echo $?`,
			"y\n2\n", "[: Illegal number: x\n"},
		{"test of files", `cd /tmp; touch a; [ -f a ] && [ ! -s a ] && [ ! -x a ] && chmod +x a && [ -x a ] && echo y`,
			"y\n", ""},
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
	})
}

func TestTools(t *testing.T) {
	check(t, []saying{
		{"who", `hostname; id -un; id -u; id`, "fw1\nroot\n0\nuid=0(root) gid=0(root) groups=0(root)\n", ""},
		{"uname", `uname; uname -n; uname -sm; uname -z`, "Linux\nfw1\nLinux x86_64\n",
			"uname: invalid option -- '-z'\n"},
		{"flood", `flood 70 | wc -c; flood 64`, "70\n" + floodLine, ""},
		{"seq", `seq 2 3; seq x`, "2\n3\n", "seq: want one or two whole numbers\n"},
		{"wrong use of timeout", `timeout; timeout -k; timeout x true; timeout --color 1 true; echo $?`, "125\n",
			"timeout: missing operand\ntimeout: option requires an argument -- 'k'\n" +
				"timeout: invalid time interval 'x'\ntimeout: invalid option -- 'color'\n"},
		{"wrong use of kill", `kill; kill -9 12; kill -9 -x; kill -0 -99; timeout 9 sh -c 'kill -HUP -$PPID'; ps`, "",
			"kill: want a signal and a process group\nkill: want a signal and a process group\n" +
				"kill: Illegal number: -x\nkill: No such process\nkill: -HUP is beyond a pretended machine\n" +
				"ps:  is beyond a pretended machine\n"},
		{"wrong use of sleep", `sleep; sleep x; sleep -1; sleep nan`, "",
			"sleep: missing operand\nsleep: invalid time interval 'x'\n" +
				"sleep: invalid time interval '-1'\nsleep: invalid time interval 'nan'\n"},
	})
}

func TestHowScriptsEnd(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name, script string
		want         ran
	}{
		{"true", "true", ran{}},
		{"false", "false", ran{code: 1}},
		{"exit", "exit 259", ran{code: 3}},
		{"last", "true; (exit 7)", ran{code: 7}},
		{"empty", "", ran{}},
		{"sleep", "sleep 0.5 1m", ran{took: 60*s + s/2}},
		{"sleep for ever", "timeout 1e300 sleep 1e300d", ran{code: 124, timedOut: true, took: spanMax}},
		{"in time", "exec timeout -k 5 300 sh -c 'sleep 2; echo hi; exit 3'", ran{out: "hi\n", code: 3, took: 2 * s}},
		{"at its bound", "exec timeout -k 5 300 sh -c 'echo a; sleep 400; echo b'",
			ran{out: "a\n", code: 124, timedOut: true, took: 300 * s}},
		{"bound 0 is none", "timeout 0 sleep 3600", ran{took: time.Hour}},
		{"status kept", "timeout --preserve-status 1 sleep 2", ran{code: 143, timedOut: true, took: s}},
		{"killed at once", "exec timeout -s KILL 2 sleep 3", ran{signal: "KILL", timedOut: true, took: 2 * s}},
		{"TERM is ignored", "trap '' TERM; exec timeout -k 5 300 sleep 400",
			ran{signal: "KILL", timedOut: true, took: 305 * s}},
		{"TERM is ignored, no KILL", "trap '' TERM; timeout 300 sleep 400",
			ran{code: 124, timedOut: true, took: 400 * s}},
		{"TERM is ignored inside", "exec timeout -k 5 10 sh -c \"trap '' TERM; sleep 20\"",
			ran{signal: "KILL", timedOut: true, took: 15 * s}},
		{"TERM is trapped", "timeout --preserve-status 9 sh -c \"trap 'echo a; exit 4' TERM; trap 'echo b' EXIT; sleep 20\"",
			ran{out: "a\nb\n", code: 4, timedOut: true, took: 9 * s}},
		{"TERM is trapped once", "timeout -k 5 9 sh -c \"trap 'echo a' TERM; sleep 20; sleep 3; echo b\"",
			ran{out: "a\nb\n", code: 124, timedOut: true, took: 12 * s}},
		{"the inner bound is hit", "timeout 10 sh -c 'timeout 2 sleep 20; echo $?; sleep 3'",
			ran{out: "124\n", timedOut: true, took: 5 * s}},
		{"the outer bound is hit", "timeout 2 sh -c 'timeout 10 sleep 20; echo $?'",
			ran{code: 124, timedOut: true, took: 2 * s}},
		{"a loop is bounded", "timeout 9 sh -c 'while true; do sleep 1; done'",
			ran{code: 124, timedOut: true, took: 9 * s}},
		{"a busy loop is bounded", "while true; do :; done", ran{signal: "KILL"}},
		{"a flood is bounded", "yes >/dev/null", ran{code: 137}},
		{"a pipe is bounded", "timeout 9 sh -c 'yes | sleep 20'", ran{code: 124, timedOut: true, took: 9 * s}},
		{"the rest runs on", "sleep 3 & echo a; exit 5", ran{out: "a\n", code: 5, took: 3 * s}},
		{"the rest is not bounded", "timeout 2 sh -c 'sleep 3 & :'", ran{took: 3 * s}},
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

func TestWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         ran
	}{
		{"not the language", "echo a\nif then",
			ran{err: "sh: 2:1: `if` must be followed by a statement list\n", code: 2}},
		{"functions without end", "echo a; f() { f; }; f",
			ran{out: "a\n", err: "sh: f: functions call each other too deep\n", code: 2}},
		{"a length", "a=b; echo ${#a}; echo b",
			ran{err: "sh: line 1: ParamExp is beyond a pretended machine\n", code: 2}},
		{"a word", strings.Repeat("x=$x$x$(flood 200000);", 9), ran{err: "sh: word too long\n", code: 2}},
		{"words", "x=$(flood 200000); echo $x $x", ran{err: "sh: argument list too long\n", code: 2}},
		{"what is captured", "x=$(flood 300000)", ran{code: 1}},
		{"a script", "flood 300000 | sh", ran{err: "sh: script has more than 262144 bytes\n", code: 2}},
		{"a full disk", "flood 1048000 > /tmp/f; flood 2000 > /tmp/g; wc -c /tmp/g; rm /tmp/f; echo a > /tmp/g",
			ran{out: "0 /tmp/g\n"}},
		{"a full disk is said", "flood 1040000 > /tmp/f; cat /tmp/f >> /tmp/f",
			ran{err: "cat: /tmp/f: No space left on device\n", code: 1}},
		{"many files", "for i in $(seq 5000); do touch /tmp/$i || exit 9; done 2>/dev/null", ran{code: 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := pretend().script(t, c.script, "")
			got.took = 0
			if got != c.want {
				t.Errorf("%s\n got %+v\nwant %+v", c.script, got, c.want)
			}
		})
	}
}

// What one command starts, another one can find and end, as long as it is there.
func TestGroupsCanBeSignalled(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name, script string
		stuck        bool
		signals      string // sent after a second, each a second after the other
		want         ran
	}{
		{"TERM", "sleep 60", false, "TERM", ran{code: 143, took: s}},
		{"KILL", "sleep 60", false, "KILL", ran{code: 137, took: s}},
		{"0", "sleep 60", false, "0", ran{took: 60 * s}},
		{"TERM is ignored", "trap '' TERM; sleep 60", false, "TERM", ran{took: 60 * s}},
		{"TERM is ignored, then KILL", "trap '' TERM; sleep 60", false, "TERM KILL", ran{code: 137, took: 2 * s}},
		{"TERM is trapped", "trap 'echo a; exit 4' TERM; sleep 60", false, "TERM", ran{out: "a\n", code: 4, took: s}},
		{"children too", "sleep 60 & sleep 50 | sleep 40", false, "TERM", ran{code: 143, took: s}},
		{"stuck", "sleep 60", true, "TERM KILL", ran{took: 60 * s}},
		{"stuck over its bound", "sleep 200", true, "", ran{code: 124, timedOut: true, took: 200 * s}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := pretend()
				go func() {
					time.Sleep(time.Second)
					list := "ps -A -o pid= -o pgid= -o stat="
					pids := strings.Fields(m.script(t, list, "").out)
					if len(pids) != 6 || pids[1] != pids[0] || pids[4] != pids[0] {
						t.Errorf("processes are %q, want a leader and a shell", pids)
					}
					for _, signal := range strings.Fields(c.signals) {
						if got := m.script(t, "kill -"+signal+" -"+pids[0], ""); got.code != 0 {
							t.Errorf("kill: %+v", got)
						}
						time.Sleep(time.Second)
					}
				}()
				var out capture
				begun := time.Now()
				how := m.Run(t.Context(), Command{Line: "timeout 100 sh -c '" + strings.ReplaceAll(c.script, "'", `'\''`) + "'",
					In: nowhere{}, Out: &out, Err: nowhere{}, Stuck: c.stuck})
				got := ran{string(out.kept), "", how.Code, how.Signal, how.TimedOut, time.Since(begun)}
				if d := cmp.Diff(c.want, got, cmp.AllowUnexported(ran{})); d != "" {
					t.Errorf("%s (-want +got)\n%s", c.script, d)
				}
				synctest.Wait()
				if left := m.processes.list(); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
				time.Sleep(10 * time.Second) // the end of the other one
			})
		})
	}
}

// upload is the sort of script that puts a file on a host.
const upload = `umask 077
trap 'rm -f "$2"' EXIT
trap 'exit 1' HUP INT TERM
set -C
cat > "$2" || exit 1
set -- "$@" $(sha256sum < "$2")
if [ "$5" != "$3" ]; then
	printf '%s\n' "sha256 is $5, expected $3" >&2
	exit 1
fi
chmod "$4" "$2" && mv -f "$2" "$1"
`

func TestUpload(t *testing.T) {
	t.Parallel()
	const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	m := pretend()
	for _, c := range []struct {
		content string
		want    ran
	}{
		{"hello", ran{}},
		{"hell", ran{code: 1, err: "sha256 is " +
			"0ebdc3317b75839f643387d783535adc360ca01f33c75f7c1e7373adcd675c0b, expected " + sum + "\n"}},
	} {
		got := m.script(t, "set -- '/tmp/a file' /tmp/.tmp "+sum+" 0640\n"+upload, c.content)
		got.took = 0
		if got != c.want {
			t.Errorf("upload of %q\n got %+v\nwant %+v", c.content, got, c.want)
		}
		if n, _ := m.disk().stat("/tmp/a file"); string(n.data) != "hello" || n.mode != 0o640 {
			t.Errorf("after an upload of %q the file is %q with mode %o", c.content, n.data, n.mode)
		}
		if _, ok := m.disk().stat("/tmp/.tmp"); ok {
			t.Errorf("after an upload of %q the temporary file is still there", c.content)
		}
	}
}

func TestModelsAnswerDifferently(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for _, model := range Models() {
		m := New(Config{Model: model, Name: "fw1"})
		said[m.script(t, "cat /etc/os-release; uname -r", "").out] = true
	}
	if len(said) != 3 {
		t.Errorf("three models gave %d answers", len(said))
	}
}

func TestPipeGivesTheRestBeforeTheEnd(t *testing.T) {
	t.Parallel()
	p := NewPipe()
	never := make(chan struct{})
	for range 3 {
		if err := p.Write(never, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	p.CloseWrite()
	total := 0
	for buf := make([]byte, 999); ; {
		n, err := p.Read(never, buf)
		total += n
		if err == io.EOF {
			break
		}
	}
	if total != 30_000 {
		t.Errorf("read %d bytes of 30000", total)
	}
	p.CloseRead()
	if err := p.Write(never, []byte("a")); err != ErrNoReader {
		t.Errorf("write without a reader: %v", err)
	}
}

func TestPipeCanBeLeft(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	close(done)
	p := NewPipe()
	if _, err := p.Read(done, make([]byte, 1)); err != ErrKilled {
		t.Errorf("read of an empty pipe: %v", err)
	}
	if err := p.Write(done, make([]byte, 2*pipeChunks*chunkMax)); err != ErrKilled {
		t.Errorf("write to a full pipe: %v", err)
	}
}

// FuzzShell looks for scripts that crash, hang or eat memory. Each ends by
// itself, at the bounds of a shell or at that of timeout.
func FuzzShell(f *testing.F) {
	for _, s := range []string{
		"", "true", "echo \"a$x${y:-b}\" 'c' \\d `echo e`", "exec timeout -k 5 300 sh -c 'echo hi'",
		"a | b && c || ! d; (e) & { f; }", "if a; then b; elif c; then d; else e; fi",
		"for x in a b; do echo $x > /tmp/f; done; while false; do :; done; cat <<E\n$x\nE\n",
		"printf '%s\\n%d%b\\0101' a 1 'c'", "[ ! -f /etc/hostname ] || test 1 -lt 2",
		"head -c 5; wc -l; sha256sum -", "yes | head", "set -eC -- a b; echo $# \"$@\"",
		"mkdir -p a/b; mv a/b c; rm -rf /; ls", "env -i; exit 1 2; cd; umask; trap 'a' TERM EXIT",
		"f() { read a b; case $a in x|[y]*) kill -TERM -$PPID;; esac; f & }; f | f", "ps -A | while read x; do echo $x; done",
		"()0",
		upload, "exec 2>&1 >/tmp/f; sleep 9 & kill",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 4096 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			pretend().script(t, "timeout -k 1 5 sh", script)
		})
	})
}
