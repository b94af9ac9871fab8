package waterfall

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

//go:embed page.html.tmpl
var source string

var tmpl = template.Must(template.New("page").Parse(source))

// Mark is something that happens once in a start.
type Mark struct {
	Name string
	At   time.Duration // since the start's begin
}

// Start is one recorded start.
type Start struct {
	Mode      string
	Began     time.Time // of the command
	Phases    []Mark    // each lasts until the next. The last is the end
	Processes []Process
}

// Geometry of the drawing, in pixels.
const (
	wide     = 1000.0
	left     = 10.0
	rowGap   = 6.0
	bar      = 18.0
	waits    = 6.0
	line     = 16.0
	colours  = 7    // of packages; the others share one
	tooShort = 0.02 // processes that imported for less of their start are not drawn
)

type view struct {
	Title, Text   string
	Width, Height float64
	Rects         []rect
	Texts         []text
	Legend        []key
}

type rect struct {
	X, Y, W, H   float64
	Class, Title string
}

type text struct {
	X, Y  float64
	Class string
	Text  string
}

type key struct{ Class, Name string }

// Write writes a page with a text and a drawing of starts, all on one scale. The page loads no other
// file and runs no script.
func Write(w io.Writer, title, said string, starts []Start) error {
	v := &view{Title: title, Text: said, Width: wide}
	v.draw(starts)
	if err := tmpl.Execute(w, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (v *view) draw(starts []Start) {
	longest := time.Second
	for _, s := range starts {
		longest = max(longest, s.length())
	}
	scale := (wide - 2*left) / longest.Seconds()
	class := v.packages(starts)
	y := line
	for _, s := range starts {
		at := func(t time.Time) float64 { return left + scale*min(max(t.Sub(s.Began), 0), s.length()).Seconds() }
		v.Texts = append(v.Texts, text{left, y, "mode", fmt.Sprintf("%s: %.1f s", s.Mode, s.length().Seconds())})
		y += rowGap
		for i, p := range s.Phases[:max(len(s.Phases)-1, 0)] {
			from, to := s.Began.Add(p.At), s.Began.Add(s.Phases[i+1].At)
			v.add(at(from), at(to), y, bar, fmt.Sprintf("phase%d", i%2), fmt.Sprintf("%s: %.2f s", p.Name, to.Sub(from).Seconds()))
			if at(to)-at(from) > 7*float64(len(p.Name)) {
				v.Texts = append(v.Texts, text{at(from) + 3, y + 13, "in", p.Name})
			}
		}
		y += bar + rowGap
		for _, p := range s.Processes {
			if p.imported() < time.Duration(tooShort*float64(s.length())) {
				continue
			}
			y += line
			v.Texts = append(v.Texts, text{left, y - 4, "process", fmt.Sprintf("begins after %.2f s, imports for %.2f s, waits for %.2f s: %s",
				p.Began.Sub(s.Began).Seconds(), p.imported().Seconds(), s.waits(p).Seconds(), shortened(strings.Join(p.Command, " ")))})
			for _, i := range p.Imports {
				v.imports(i, y, at, class)
			}
			for _, w := range p.Waits {
				v.add(at(w.From), at(w.To), y+bar, waits, "waits", fmt.Sprintf("waits for %.2f s", w.To.Sub(w.From).Seconds()))
			}
			y += bar + waits + rowGap
		}
		y += line + rowGap
	}
	v.Height = y
	v.Legend = append(v.Legend, key{"waits", "uses no processor"})
}

// imports draws an import as its packages, each as long as its own modules took, longest first.
func (v *view) imports(i Import, y float64, at func(time.Time) float64, class map[string]string) {
	from := i.From
	for _, p := range i.Packages {
		to := from.Add(p.Took)
		v.add(at(from), at(to), y, bar, cmp.Or(class[p.Name], "other"), fmt.Sprintf("%s: %.2f s", p.Name, p.Took.Seconds()))
		from = to
	}
}

func (v *view) add(from, to, y, height float64, class, title string) {
	if to-from >= 0.2 { // shorter ones cannot be seen, and are many
		v.Rects = append(v.Rects, rect{round(from), y, round(to - from), height, class, title})
	}
}

func round(x float64) float64 { return float64(int(x*100+0.5)) / 100 }

// packages gives the longest ones colours.
func (v *view) packages(starts []Start) map[string]string {
	total := map[string]time.Duration{}
	for _, s := range starts {
		for _, p := range s.Processes {
			for _, i := range p.Imports {
				for _, one := range i.Packages {
					total[one.Name] += one.Took
				}
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(total), func(a, b string) int { return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a, b)) })
	class := map[string]string{}
	for i, name := range names[:min(colours, len(names))] {
		class[name] = fmt.Sprintf("package%d", i)
		v.Legend = append(v.Legend, key{class[name], name})
	}
	if len(names) > colours {
		v.Legend = append(v.Legend, key{"other", "other packages"})
	}
	return class
}

func (s *Start) length() time.Duration {
	if len(s.Phases) == 0 {
		return 0
	}
	return s.Phases[len(s.Phases)-1].At
}

func (p *Process) imported() (sum time.Duration) {
	for _, i := range p.Imports {
		sum += i.To.Sub(i.From)
	}
	return sum
}

// waits is how long a process used no processor, up to the start's end.
func (s *Start) waits(p Process) (sum time.Duration) {
	end := s.Began.Add(s.length())
	for _, w := range p.Waits {
		if w.To.After(end) {
			w.To = end
		}
		sum += max(w.To.Sub(w.From), 0)
	}
	return sum
}

const longestCommand = 90

func shortened(s string) string {
	if r := []rune(s); len(r) > longestCommand {
		return string(r[:longestCommand]) + "…"
	}
	return s
}
