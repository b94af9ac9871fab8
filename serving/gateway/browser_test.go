package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/test/stubengine"
	"medusa/test/testenv"
)

// probe is a script that waits until the page shows a text. It tells the server, and puts into the title whether the page is wider than
// its window, and how many bars are visible.
const probe = `
let told = false;
setInterval(() => {
  if (told || !document.body.innerText.includes('SHOWN')) return;
  told = true;
  const bars = [...document.querySelectorAll('rect')].filter(r => r.getBoundingClientRect().width > 0).length;
  document.title = (document.documentElement.scrollWidth > innerWidth ? 'wide' : 'fits') + ' bars=' + bars;
  fetch('shown');
}, 20);
`

// shown wraps a server. A browser considers the page loaded only when the text is shown, because an image of the page comes only then.
func shown(next http.Handler, text string) http.Handler {
	is := make(chan struct{})
	tell := sync.OnceFunc(func() { close(is) })
	script := strings.Replace(probe, "SHOWN", text, 1)
	sum := sha256.Sum256([]byte(script))
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("GET /shown", func(http.ResponseWriter, *http.Request) { tell() })
	mux.HandleFunc("GET /image", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-is:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = w.Write([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		got := httptest.NewRecorder()
		next.ServeHTTP(got, r)
		policy := strings.Replace(got.Header().Get("Content-Security-Policy"), "script-src ", fmt.Sprintf("img-src 'self'; script-src 'sha256-%s' ", base64.StdEncoding.EncodeToString(sum[:])), 1)
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", got.Header().Get("Content-Type"))
		_, _ = w.Write([]byte(strings.Replace(got.Body.String(), "</body>", `<img src="image" alt=""><script>`+script+`</script></body>`, 1)))
	})
	return mux
}

// browse returns the DOM of the page after the text is there, and the browser's console messages.
func browse(t *testing.T, browser, url, window string) (dom, console string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--enable-logging=stderr", "--user-data-dir="+t.TempDir(), "--window-size="+window, "--dump-dom", url)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, errs.String())
	}
	for _, line := range strings.Split(errs.String(), "\n") {
		if strings.Contains(line, ":CONSOLE") {
			console += line + "\n"
		}
	}
	return out.String(), console
}

// A browser shows the engines, why requests wait, and which engines have failed, on a screen and on a phone, without a message on its
// console.
func TestPageInBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Skip(t, testenv.Chromium)
	}
	f := start(t, "gpus: ['7']\nretry: 500\npolicy: {name: fcfs}\nmodels:\n- {name: m0, command: [e, '{port}'], memory: 0.6, slots: 1}\n"+
		"- {name: m1, command: [e, '{port}'], memory: 0.6}\n- {name: m2, command: [e, '{port}'], memory: 0.3}\n",
		func(fn int, s *stubengine.Stub) {
			s.Service = time.Hour
			if fn == 2 {
				s.Refuses = fmt.Errorf("no <b>weights</b>")
			}
		})
	if _, err := stubengine.Ask(t.Context(), f.url, "m2", "x", false); err == nil {
		t.Fatal("an engine that does not start answers")
	}
	f.crowd(t, 3)
	for _, window := range []string{"1200,900", "500,900"} {
		front := httptest.NewServer(shown(f.Handler(), "2 requests wait"))
		dom, console := browse(t, browser, front.URL, window)
		front.CloseClientConnections()
		front.Close()
		if console != "" {
			t.Errorf("at %s: %s", window, console)
		}
		for _, want := range []string{"GPU 7", "60 % of its memory", "GPU 7: its engine has as many requests as it takes", "no &lt;b&gt;weights&lt;/b&gt;", "policy fcfs", "live"} {
			if !strings.Contains(dom, want) {
				t.Errorf("at %s: the page lacks %q", window, want)
			}
		}
		title := regexp.MustCompile(`<title>(\w+) bars=(\d+)</title>`).FindStringSubmatch(dom)
		if title == nil || title[1] != "fits" || title[2] == "0" {
			t.Errorf("at %s: layout %q", window, title)
		}
	}
}
