package scripts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// quote makes one shell word of any text. Single quotes hold everything but a
// single quote, in every shell; syntax.Quote refuses newlines and tabs for a
// POSIX shell, and changes its style with the value. It never leaves a value
// bare, so that no value is taken for a keyword or joins its neighbours.
func quote(v string) (string, error) {
	if strings.ContainsRune(v, 0) {
		return "", errors.New("a shell word cannot hold a NUL character")
	}
	return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'", nil
}

// plainWord is a word that means itself in every shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// ShellCommand returns the text of a shell that runs a command of these words, each as it
// is. Words that need no quotes get none, so that people recognise what they typed.
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

// checkShell tells what is wrong with a shell text: its syntax, and
// placeholders that stand where a quoted word is not a quoted word.
//
// The text is parsed twice, each time with every placeholder replaced by as
// many other bytes, so that places stay. First by bare letters, which tells
// what surrounds a placeholder and gives the message. Then by quoted letters,
// which must come out as one whole quoted string: what the first look does not
// know, the second refuses.
func checkShell(text string, t template) []fault {
	holes := t.placeholders()
	file, bad := parseShell(punch(text, holes, func(n int) string {
		return strings.Repeat("A", n)
	}))
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

func inside(pos syntax.Pos, text string) int {
	return min(int(pos.Offset()), len(text))
}

// misplaced finds the placeholders that stand in quotes and the like.
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

// holesIn gives the placeholders within a node.
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

// trouble says why a value cannot stand in a piece of shell text, and what to
// write instead; "" if it can.
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

// surrounded looks for quotes and the like around a piece of shell text. A
// command in $( ) starts afresh inside double quotes, but nowhere else: shells
// differ too much there.
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

// unquoted finds the placeholders that the shell does not read as one quoted
// string, for whatever reason.
func unquoted(file *syntax.File, holes []part) []fault {
	good := map[int]bool{} // by start
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
