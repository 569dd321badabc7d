// Package man writes the manual pages of a program from its commands, so that pages and help say
// the same: one page a command, in the language of man(7).
//
// Floor 0: may import the standard library, cobra and pflag.
package man

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// WriteAll writes the page of the command, and of each command below it that people see, into a
// folder that is there. The version stands at the foot of each page.
func WriteAll(c *cobra.Command, dir, version string) error {
	c.InitDefaultHelpFlag()
	f, err := os.Create(filepath.Join(dir, name(c)+".1"))
	if err != nil {
		return err
	}
	err = Write(f, c, version)
	if closed := f.Close(); err == nil {
		err = closed
	}
	for _, sub := range c.Commands() {
		if err == nil && visible(sub) {
			err = WriteAll(sub, dir, version)
		}
	}
	return err
}

func visible(c *cobra.Command) bool { return c.IsAvailableCommand() && c.Name() != "help" }

// name returns the name of the page of a command: muster-hosts-ls.
func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Write writes the page of one command.
func Write(w io.Writer, c *cobra.Command, version string) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s %s\n.nh\n.ad l\n", quote(strings.ToUpper(name(c))),
		quote("muster "+version), quote("muster"))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(name(c)), line(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", line(c.UseLine()))
	if words := c.Long; words != "" {
		b.WriteString(".SH DESCRIPTION\n" + paragraphs(words))
	}
	options(&b, "OPTIONS", c.NonInheritedFlags())
	options(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + literal(c.Example))
	}
	also(&b, c)
	_, err := io.WriteString(w, b.String())
	return err
}

func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		text := "--" + f.Name
		if f.Shorthand != "" {
			text = "-" + f.Shorthand + ", " + text
		}
		b.WriteString(".TP\n\\fB" + escape(text) + "\\fR")
		if value != "" {
			b.WriteString(" \\fI" + escape(value) + "\\fR")
		}
		b.WriteString("\n" + line(usage) + "\n")
	})
}

// also names the pages of the command above and of those below.
func also(b *strings.Builder, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, name(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if visible(sub) {
			pages = append(pages, name(sub))
		}
	}
	if len(pages) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, p := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", escape(p), comma)
	}
}

// paragraphs sets a text of help: what is indented stays as it is, the rest is filled.
func paragraphs(text string) string {
	var b strings.Builder
	for i, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if indented(p) {
			b.WriteString(literal(p))
			continue
		}
		for l := range strings.SplitSeq(p, "\n") {
			b.WriteString(line(l) + "\n")
		}
	}
	return b.String()
}

// indented reports whether some line of a paragraph has its own form, as tables do.
func indented(p string) bool {
	for l := range strings.SplitSeq(p, "\n") {
		if strings.HasPrefix(l, " ") || strings.HasPrefix(l, "\t") {
			return true
		}
	}
	return false
}

// literal sets a text as it stands.
func literal(text string) string {
	var b strings.Builder
	b.WriteString(".RS 2\n.nf\n")
	for l := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		b.WriteString(guard(escape(strings.TrimPrefix(l, "  "))) + "\n")
	}
	b.WriteString(".fi\n.RE\n")
	return b.String()
}

// line makes a text one line that is no request of man(7).
func line(text string) string { return guard(escape(strings.Join(strings.Fields(text), " "))) }

// guard keeps a line that begins with a dot or a quote from being a request.
func guard(l string) string {
	if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
		return `\&` + l
	}
	return l
}

// escape writes signs that man(7) would change: a hyphen that shall be copied from the page is a
// minus there, and a quote, a caret, a grave accent and a tilde are drawn otherwise.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\(ga", "^", `\(ha`,
	"~", `\(ti`)

func escape(text string) string { return escapes.Replace(text) }

func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `""`) + `"` }
