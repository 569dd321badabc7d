package scripts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// quote turns any text into one shell word. Single quotes protect everything except a single
// quote, in every shell. syntax.Quote would not do: it refuses newlines and tabs for a POSIX
// shell, and its style depends on the value. quote always adds quotes, so that no value
// becomes a keyword or merges with its neighbours.
func quote(v string) (string, error) {
	if strings.ContainsRune(v, 0) {
		return "", errors.New("a shell word cannot hold a NUL character")
	}
	return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'", nil
}

// plainWord matches words that mean themselves in every shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// ShellCommand returns the shell text that runs a command with exactly these words. Words that
// need no quotes get none, so that people recognize what they typed.
func ShellCommand(words []string) (string, error) {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w
		if plainWord.MatchString(w) {
			continue
		}
		var err error
		if list[i], err = quote(w); err != nil {
			return "", err
		}
	}
	return strings.Join(list, " "), nil
}

// checkShell returns the mistakes in a shell text: in its syntax, and placeholders at places
// where a quoted word would not be read as one.
//
// It parses the text twice, with every placeholder replaced by a filler of the same
// length, so that positions stay. The first filler is bare letters, which shows the
// surroundings of a placeholder and gives good messages. The second is quoted letters,
// which must be parsed as one whole quoted string; this catches all cases that the first
// pass does not know.
func checkShell(text string, t template) []fault {
	holes := t.placeholders()
	file, bad := parsePunched(text, t)
	if bad != nil {
		return []fault{*bad}
	}
	if faults := misplaced(file, text, holes); len(faults) > 0 {
		return faults
	}

	file, bad = parseShell(punch(text, holes, func(n int) string {
		return "'" + strings.Repeat("A", n-2) + "'"
	}))
	if bad != nil {
		return []fault{*bad}
	}
	return unquoted(file, holes)
}

// punch replaces each placeholder by a text of the same length.
func punch(text string, holes []part, filler func(n int) string) string {
	var b strings.Builder
	done := 0
	for _, h := range holes {
		b.WriteString(text[done:h.start])
		b.WriteString(filler(h.end - h.start))
		done = h.end
	}
	b.WriteString(text[done:])
	return b.String()
}

func parseShell(text string) (*syntax.File, *fault) {
	p := syntax.NewParser(syntax.Variant(syntax.LangPOSIX), syntax.KeepComments(true))
	file, err := p.Parse(strings.NewReader(text), "")
	if err == nil {
		return file, nil
	}

	var broken syntax.ParseError
	var foreign syntax.LangError
	switch {
	case errors.As(err, &broken):
		return nil, &fault{inside(broken.Pos, text), "not shell: " + broken.Text}
	case errors.As(err, &foreign):
		return nil, &fault{inside(foreign.Pos, text),
			"not shell: the POSIX shell of the hosts has no " + foreign.Feature}
	}
	return nil, &fault{0, "not shell: " + err.Error()}
}

func inside(pos syntax.Pos, text string) int { return min(int(pos.Offset()), len(text)) }

// misplaced finds placeholders inside quotes and similar constructs.
func misplaced(file *syntax.File, text string, holes []part) []fault {
	var faults []fault
	var above []syntax.Node
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		switch n.(type) {
		case *syntax.Lit, *syntax.SglQuoted, *syntax.Comment:
			for _, h := range holesIn(n, holes) {
				if advice := trouble(n, above, text[:h.start]); advice != "" {
					faults = append(faults, fault{h.start, fmt.Sprintf("{{%s}} %s", h.ref, advice)})
				}
			}
		}
		above = append(above, n)
		return true
	})
	return faults
}

// holesIn returns the placeholders inside a node.
func holesIn(n syntax.Node, holes []part) []part {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	first, _ := slices.BinarySearchFunc(holes, from, func(h part, from int) int {
		return h.start - from
	})
	last := first
	for last < len(holes) && holes[last].end <= to {
		last++
	}
	return holes[first:last]
}

const setVariable = `set a variable before, v={{…}}, and use "$v" here`

// trouble explains why a value cannot stand in a piece of shell text, and suggests an
// alternative; it returns "" if the value can.
func trouble(leaf syntax.Node, above []syntax.Node, before string) string {
	switch leaf.(type) {
	case *syntax.Comment:
		return "stands in a comment: a value with a newline would end it; remove it"
	case *syntax.SglQuoted:
		return "stands in quotes, but a value brings its own: take it out of them"
	}
	if strings.HasSuffix(before, `\`) {
		return `follows a backslash, which would undo its quotes: remove the backslash`
	}
	if _, word := above[len(above)-1].(*syntax.Word); !word {
		if _, quotes := above[len(above)-1].(*syntax.DblQuoted); !quotes {
			return "stands where the shell wants a name, but a value is only data: " + setVariable
		}
	}
	return surrounded(leaf, above)
}

// surrounded looks for quotes and similar constructs around a piece of shell text. A command
// in $( ) starts a new context inside double quotes, but nowhere else, because shells differ
// too much there.
func surrounded(leaf syntax.Node, above []syntax.Node) string {
	fresh := false
	inner := leaf
	for _, n := range slices.Backward(above) {
		switch n := n.(type) {
		case *syntax.DblQuoted:
			if !fresh {
				return "stands in quotes, but a value brings its own: take it out of them, " +
					`as in "before"{{…}}"after"`
			}
		case *syntax.CmdSubst:
			if n.Backquotes {
				return "stands in backquotes, which a value could end: use $( )"
			}
			fresh = true
		case *syntax.ArithmExp:
			return "stands in arithmetic, where quotes mean nothing: set a variable before, " +
				"n={{…}}, and use $((n))"
		case *syntax.ParamExp:
			return "stands in ${ }, where shells disagree on quotes: " + setVariable
		case *syntax.Redirect:
			switch {
			case n.Op != syntax.Hdoc && n.Op != syntax.DashHdoc:
			case inner == syntax.Node(n.Word):
				return "stands in the end mark of a here-document: choose a fixed word"
			default:
				return "stands in a here-document, where quotes mean nothing: " + setVariable
			}
		}
		inner = n
	}
	return ""
}

// unquoted finds the placeholders that the shell does not read as one quoted string, for any
// reason.
func unquoted(file *syntax.File, holes []part) []fault {
	good := map[int]bool{} // by start of the placeholder
	syntax.Walk(file, func(n syntax.Node) bool {
		q, ok := n.(*syntax.SglQuoted)
		if !ok || q.Dollar {
			return true
		}
		for _, h := range holesIn(q, holes) {
			good[h.start] = int(q.Pos().Offset()) == h.start && int(q.End().Offset()) == h.end
		}
		return true
	})

	var faults []fault
	for _, h := range holes {
		if !good[h.start] {
			faults = append(faults, fault{h.start, fmt.Sprintf(
				"{{%s}} stands where a quoted value is not data: %s", h.ref, setVariable)})
		}
	}
	return faults
}
