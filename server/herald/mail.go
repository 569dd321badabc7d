package herald

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/smtp"
	"strings"
	"time"

	"muster/internal/wording"
	"muster/notify"
)

// sendMail sends a message over SMTP. A server that has taken it for one address has taken it for
// all: the addresses are given in one transaction, and one that is refused refuses all.
func sendMail(ctx context.Context, to notify.Mail, m notify.Message) error {
	host, _, err := net.SplitHostPort(to.Server)
	if err != nil {
		return errors.New("server is not host:port")
	}
	password := ""
	if to.User != "" {
		if password, err = secret(to.PasswordFile, "password_file"); err != nil {
			return err
		}
	}
	trust, err := trusting(to.CAFile)
	if err != nil {
		return err
	}
	trust.ServerName = host
	conn, err := dial(ctx, to, trust)
	if err != nil {
		return said(host, err)
	}
	// The end of ctx ends each read and write.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return said(host, errors.Join(err, conn.Close()))
	}
	defer c.Close()
	if err := login(c, to, trust, password); err != nil {
		return said(host, err)
	}
	return said(host, transaction(c, to, m))
}

func dial(ctx context.Context, to notify.Mail, trust *tls.Config) (net.Conn, error) {
	d := &net.Dialer{Timeout: sendTimeout}
	if to.TLS == "tls" {
		return (&tls.Dialer{NetDialer: d, Config: trust}).DialContext(ctx, "tcp", to.Server)
	}
	return d.DialContext(ctx, "tcp", to.Server)
}

func login(c *smtp.Client, to notify.Mail, trust *tls.Config, password string) error {
	if to.TLS == "starttls" {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return errors.New("it offers no STARTTLS, so nothing is sent: everybody on the way could " +
				"read it")
		}
		if err := c.StartTLS(trust); err != nil {
			return err
		}
	}
	if to.User == "" {
		return nil
	}
	return c.Auth(smtp.PlainAuth("", to.User, password, trust.ServerName))
}

func transaction(c *smtp.Client, to notify.Mail, m notify.Message) error {
	if err := c.Mail(to.From); err != nil {
		return err
	}
	for _, one := range to.To {
		if err := c.Rcpt(one); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(letter(to, m)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // it has the message already
	return nil
}

// letter returns a mail with its head. Each try sends the same Message-ID.
func letter(to notify.Mail, m notify.Message) []byte {
	var b bytes.Buffer
	_, domain, _ := strings.Cut(to.From, "@")
	for _, line := range [][2]string{{"From", to.From}, {"To", strings.Join(to.To, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", wording.OneLine(m.Title, 200))},
		{"Date", m.At.UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700")},
		{"Message-ID", "<" + m.ID + "@" + domain + ">"}, {"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"}} {
		fmt.Fprintf(&b, "%s: %s\r\n", line[0], line[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(m.MailText())) // into memory: no error is possible
	_ = w.Close()
	return b.Bytes()
}

func said(host string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s", host, wording.OneLine(err.Error(), 300))
}
