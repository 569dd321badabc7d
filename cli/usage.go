package cli

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster/internal/wording"
)

// RefusedUse adds the exit code for wrong use if the server found the input wrong.
func RefusedUse(err error) error {
	var no *Refusal
	if errors.As(err, &no) && no.Status == http.StatusUnprocessableEntity {
		return Exit(ExitUsage, err)
	}
	return err
}

// PlainUsage makes errors of cobra and the standard library about wrong use say what was expected,
// for c and all commands below it.
func PlainUsage(c *cobra.Command) {
	check := c.Args
	if check == nil && c.HasParent() {
		check = cobra.ArbitraryArgs
	}
	if check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			return errors.Join(argsError(c, args, check(c, args)), emptyFlags(c))
		}
	}
	c.SetFlagErrorFunc(flagError)
	if c.Name() == "ls" && !c.HasAlias("list") {
		c.Aliases = append(c.Aliases, "list")
	}
	for _, sub := range c.Commands() {
		PlainUsage(sub)
	}
}

// SaysItself marks a flag whose absence its command reports, together with other mistakes.
const SaysItself = "muster-says-itself"

// MissesItself marks flags in this way: a missing and an empty flag are one mistake.
func MissesItself(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		f := c.Flags().Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[SaysItself] = nil
	}
}

// emptyFlags refuses flags with an empty text. It usually comes from a variable of a shell that is
// not set, and must not count as no flag: --zone "$ZONE" would then mean all zones.
func emptyFlags(c *cobra.Command) error {
	var errs []error
	c.Flags().Visit(func(f *pflag.Flag) {
		var values []string
		switch v := f.Value.(type) {
		case pflag.SliceValue:
			// An empty list comes from an empty text.
			if values = v.GetSlice(); len(values) == 0 {
				values = []string{""}
			}
		default:
			values = []string{v.String()}
		}
		blank := func(text string) bool { return strings.TrimSpace(text) == "" }
		if _, told := f.Annotations[SaysItself]; !told && slices.ContainsFunc(values, blank) {
			errs = append(errs, fmt.Errorf("--%s is empty, as of a variable that is not set: want a value",
				f.Name))
		}
	})
	return errors.Join(errs...)
}

// argsError explains in plain words the mistake in the arguments of a command. Errors that cobra
// did not make have words of their own.
func argsError(c *cobra.Command, args []string, err error) error {
	if err == nil {
		return nil
	}
	want := "want " + strings.TrimSuffix(c.UseLine(), " [flags]")
	switch text := err.Error(); {
	case strings.HasPrefix(text, "unknown command ") && c.HasSubCommands():
		return fmt.Errorf("there is no command %s%s", Quoted(c.CommandPath()+" "+args[0]),
			meant(args[0], subcommands(c)))
	case strings.HasPrefix(text, "unknown command "):
		return fmt.Errorf("%s takes no argument: leave out %s", c.CommandPath(), Quoted(args[0]))
	case !strings.HasPrefix(text, "accepts ") && !strings.HasPrefix(text, "requires "):
		return err
	case len(args) == 0:
		return fmt.Errorf("%s: nothing is named", want)
	}
	hint := meant(args[0], subcommands(c))
	if at := c.ArgsLenAtDash(); at < 0 && len(args) > 1 && strings.Contains(c.Use, "--") {
		hint = ": write -- before the command"
	}
	return fmt.Errorf("%s: it got %s, %s%s", want, Count(len(args), "argument"),
		Quoted(strings.Join(args, " ")), hint)
}

// Quoted returns a text in quotes.
func Quoted(text string) string { return strconv.Quote(text) }

// subcommands returns the names that may follow a command, its aliases too.
func subcommands(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	return names
}

// meant returns the end of a message about an unknown word: the known word nearest to it.
func meant(word string, words []string) string {
	near := wording.Nearest(word, words)
	if near == "" {
		return ""
	}
	return ": did you mean " + near + "?"
}

// flagError explains in plain words the mistake in a flag.
func flagError(c *cobra.Command, err error) error {
	var (
		none    *pflag.NotExistError
		lacking *pflag.ValueRequiredError
		bad     *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &none) && none.GetSpecifiedShortnames() != "":
		return fmt.Errorf("%s has no flag -%s%s", c.CommandPath(), none.GetSpecifiedName(),
			longFlag(c, none))
	case errors.As(err, &none):
		return fmt.Errorf("%s has no flag --%s%s", c.CommandPath(), none.GetSpecifiedName(),
			meant("--"+none.GetSpecifiedName(), flagNames(c)))
	case errors.As(err, &lacking):
		return fmt.Errorf("--%s has no value: %s", lacking.GetFlag().Name, wanted(lacking.GetFlag()))
	case errors.As(err, &bad):
		return fmt.Errorf("--%s %s: want %s", bad.GetFlag().Name, Quoted(bad.GetValue()),
			form(bad.GetFlag()))
	}
	return err
}

// longFlag returns a hint for a word behind one dash: -output instead of --output.
func longFlag(c *cobra.Command, e *pflag.NotExistError) string {
	word, _, _ := strings.Cut(e.GetSpecifiedShortnames(), "=")
	if len(word) < 2 {
		return ""
	}
	if c.Flags().Lookup(word) != nil {
		return ": did you mean --" + word + "?"
	}
	return meant("--"+word, flagNames(c))
}

func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// wanted returns what a flag expects, in the words of its help.
func wanted(f *pflag.Flag) string {
	name, usage := pflag.UnquoteUsage(f)
	return fmt.Sprintf("want --%s %s, %s", f.Name, strings.ToUpper(name), usage)
}

// form returns an example of the value of a flag.
func form(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "a time such as 90s, 30m or 2h"
	case "int", "int64", "count":
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	}
	name, usage := pflag.UnquoteUsage(f)
	return name + ", " + usage
}

// exclusive begins cobra's error about flags that exclude each other. The error names all flags of
// the group and then the given ones: in brackets, behind the last of "; ".
const exclusive = "if any flags in the group "

// plainError explains in plain words an error that cobra itself finds after it has read flags and
// arguments.
func plainError(err error) error {
	text := err.Error()
	if !strings.HasPrefix(text, exclusive) {
		return err
	}
	_, given, _ := strings.Cut(text, "; [")
	given, _, _ = strings.Cut(given, "]")
	return fmt.Errorf("--%s exclude each other: give one of them",
		strings.Join(strings.Fields(given), " and --"))
}
