package approvals

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

func newApprove() *cobra.Command {
	key, yes := "", false
	c := &cobra.Command{
		Use:   "approve TASK",
		Short: "Sign the order of a task that waits for signatures",
		Long: `approve shows the plan of a task, asks, and signs its order by ssh-keygen with a key of
SSH. The key can be one of an agent (--key FILE.pub), or a security key that wants a
touch. Without --key it is that of MUSTER_SIGN_KEY, else the first that exists of
id_ed25519_sk, id_ed25519, id_ecdsa_sk and id_ecdsa in ~/.ssh. A line of the file
allowed_signers must give the key your name.

The task runs as soon as enough people have signed it. On its page among the approvals
people sign with a passkey, too.`,
		Example: `  muster approvals approve 0wcy7y2fb2
  muster approvals approve 0wcy7y2fb2 --key ~/.ssh/id_ed25519_sk
  muster approvals approve 0wcy7y2fb2 --yes -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete,
	}
	c.Flags().StringVar(&key, "key", "", "`file` of the key that signs")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err != nil {
			return err
		}
		signer, err := NewSigner(key)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		d, err := Of(ctx, s.Client, id)
		if err != nil {
			return err
		}
		p, err := planOf(d, id)
		if err != nil {
			return err
		}
		fmt.Fprint(s.Err, p.text())
		if !yes {
			if err := consents(c.InOrStdin(), s.Err); err != nil {
				return err
			}
		}
		did, err := signer.endorse(ctx, s, p)
		switch {
		case err != nil:
			return err
		case s.JSON:
			return s.WriteJSON(did)
		}
		return s.Write(didWords(did) + "\n")
	})
}

// consents asks a person for a yes. The error says that there was none.
func consents(in io.Reader, out io.Writer) error {
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return cli.Exit(cli.ExitUsage, errors.New("there is no terminal to ask at: give --yes to sign "+
			"without a question; nothing was signed"))
	}
	return answered(in, out)
}

// answered asks the question, and accepts only a yes.
func answered(in io.Reader, out io.Writer) error {
	fmt.Fprint(out, "Sign this order? [y/N] ")
	line, err := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if word := strings.ToLower(strings.TrimSpace(line)); word != "y" && word != "yes" {
		return errors.New("nothing was signed")
	}
	return nil
}

// endorse signs the order of a plan and sends the signature.
func (k Signer) endorse(ctx context.Context, s *cli.Session, p plan) (did api.Endorsed, err error) {
	signature, err := k.sign(ctx, p.said.Order, s.Err)
	if err != nil {
		return did, err
	}
	err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: pathOf(p.order.Task),
		Bound: cli.SubmitTimeout,
		Body:  api.EndorseRequest{Hash: p.said.Hash, Signature: string(signature), As: s.As}}, &did)
	return did, err
}

// didWords says what a signature has brought about.
func didWords(did api.Endorsed) string {
	words := fmt.Sprintf("task %s is signed by %s", cli.Cell(string(did.Task)),
		cli.Cell(strings.Join(did.Signed, ", ")))
	if did.Committed {
		return words + ": it runs"
	}
	return words + missingWords(&did.Missing)
}

// SignOwn signs a task that its operator has just submitted, and says so.
func (k Signer) SignOwn(ctx context.Context, s *cli.Session, b api.Submit, id jobs.TaskID) (
	api.Endorsed, error) {
	d, err := Of(ctx, s.Client, id)
	if err != nil {
		return api.Endorsed{}, err
	}
	p, err := planOf(d, id)
	if err != nil {
		return api.Endorsed{}, err
	}
	if p.spec.Runbook != b.Runbook || p.spec.On != b.On {
		return api.Endorsed{}, fmt.Errorf("the order of task %s runs %s on %s, which is not what you "+
			"have asked for: sign nothing, and tell who runs the server", id, cli.Cell(p.spec.Runbook),
			cli.Cell(p.spec.On))
	}
	fmt.Fprint(s.Err, p.text())
	did, err := k.endorse(ctx, s, p)
	if err == nil {
		s.Say("%s", didWords(did))
	}
	return did, err
}
