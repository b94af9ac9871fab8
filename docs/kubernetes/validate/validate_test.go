package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// documents returns a file's YAML documents as JSON.
func documents(t *testing.T, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, doc := range regexp.MustCompile(`(?m)^---$`).Split(string(data), -1) {
		object, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, object)
	}
	return out
}

// strict decodes without tolerance for unknown or repeated fields.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func TestManifestsAreOfTheKubernetesAPI(t *testing.T) {
	for _, name := range []string{"init-container.yaml", "image-volume.yaml"} {
		deployments := 0
		for _, doc := range documents(t, name) {
			var head struct{ APIVersion, Kind string }
			if err := json.Unmarshal(doc, &head); err != nil {
				t.Fatal(err)
			}
			switch head.APIVersion + " " + head.Kind {
			case "apps/v1 Deployment":
				var d appsv1.Deployment
				if err := strict(doc, &d); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				checkPod(t, name, &d.Spec.Template.Spec)
				for key, value := range d.Spec.Selector.MatchLabels {
					if d.Spec.Template.Labels[key] != value {
						t.Errorf("%s: the selector does not select the template", name)
					}
				}
				deployments++
			case "v1 Secret":
				if err := strict(doc, new(corev1.Secret)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case "v1 ConfigMap":
				if err := strict(doc, new(corev1.ConfigMap)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			default:
				t.Errorf("%s: unexpected %s %s", name, head.APIVersion, head.Kind)
			}
		}
		if deployments != 1 {
			t.Errorf("%s: %d deployments", name, deployments)
		}
	}
}

// checkPod checks what types cannot say.
func checkPod(t *testing.T, name string, pod *corev1.PodSpec) {
	t.Helper()
	for _, problem := range problems(pod) {
		t.Errorf("%s: %s", name, problem)
	}
}

func problems(pod *corev1.PodSpec) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
		if v.Image != nil && !pinned(v.Image.Reference) {
			bad("volume %s: %s is not named by digest", v.Name, v.Image.Reference)
		}
	}
	used := map[string]bool{}
	for i, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if !pinned(c.Image) {
			bad("container %s: %s is not named by digest", c.Name, c.Image)
		}
		if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !is(s.ReadOnlyRootFilesystem) ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			bad("container %s has more privileges than it needs", c.Name)
		}
		for _, m := range c.VolumeMounts {
			v, found := volumes[m.Name]
			if !found {
				bad("container %s mounts %s, which is no volume", c.Name, m.Name)
			}
			used[m.Name] = true
			for _, word := range c.Command[:min(1, len(c.Command))] {
				if strings.HasPrefix(word, m.MountPath+"/") && v.EmptyDir == nil {
					bad("container %s executes %s from a volume that may be mounted noexec", c.Name, word)
				}
			}
			if v.Image != nil && strings.HasPrefix(m.MountPath, "/opt/medusa") {
				bad("container %s has Medusa in an image volume", c.Name)
			}
		}
		if i >= len(pod.InitContainers) && len(c.Command) > 0 && !slices.Contains(c.Command, "restore") {
			bad("container %s does not go through medusa restore", c.Name)
		}
	}
	if c := pod.SecurityContext; c == nil || !is(c.RunAsNonRoot) || c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		bad("the pod may run as root, or without a filter of system calls")
	}
	for name := range volumes {
		if !used[name] {
			bad("volume %s is mounted nowhere", name)
		}
	}
	return out
}

func is(b *bool) bool { return b != nil && *b }

func pinned(image string) bool {
	return regexp.MustCompile(`^registry\.example/[a-z0-9/-]+@sha256:[0-9a-f]{64}$`).MatchString(image)
}

// The checks themselves find what they are for.
func TestProblemsAreFound(t *testing.T) {
	for change, edit := range map[string]func(*corev1.PodSpec){
		"executes /opt/medusa/medusa from a volume": func(p *corev1.PodSpec) {
			p.Volumes[1].VolumeSource = corev1.VolumeSource{Image: p.Volumes[0].Image}
		},
		"is not named by digest":        func(p *corev1.PodSpec) { p.Containers[0].Image = "registry.example/llm/engine:v1" },
		"which is no volume":            func(p *corev1.PodSpec) { p.Containers[0].VolumeMounts[0].Name = "other" },
		"is mounted nowhere":            func(p *corev1.PodSpec) { p.Volumes = append(p.Volumes, corev1.Volume{Name: "idle"}) },
		"not go through medusa restore": func(p *corev1.PodSpec) { p.Containers[0].Command = []string{"engine"} },
		"the pod may run as root":       func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil },
		"without a filter":              func(p *corev1.PodSpec) { p.SecurityContext.SeccompProfile = nil },
		"container engine has more":     func(p *corev1.PodSpec) { p.Containers[0].SecurityContext = nil },
		"container install has more": func(p *corev1.PodSpec) {
			p.InitContainers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"}
		},
	} {
		var d appsv1.Deployment
		if err := strict(documents(t, "image-volume.yaml")[0], &d); err != nil {
			t.Fatal(err)
		}
		pod := &d.Spec.Template.Spec
		if edit(pod); !strings.Contains(strings.Join(problems(pod), "\n"), change) {
			t.Errorf("not found: %q, only %q", change, problems(pod))
		}
	}
	if err := strict([]byte(`{"spec": {"template": {"spec": {"volums": []}}}}`), new(appsv1.Deployment)); err == nil {
		t.Error("an unknown field is accepted")
	}
}

// kserve is the version whose resource definition is meant.
const kserve = "github.com/kserve/kserve@v0.15.2"

// definition returns the schema of a version of a resource that a module defines in a file, closed: what it does not name is not allowed.
func definition(t *testing.T, module, path, version string) *jsonschema.Schema {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatalf("fetch %s: %v\n%s", module, err, out)
	}
	var fetched struct{ Dir string }
	if err := json.Unmarshal(out, &fetched); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(fetched.Dir, path))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			schema = v.Schema.OpenAPIV3Schema
		}
	}
	if len(schema) == 0 {
		t.Fatalf("%s has no version %s", path, version)
	}
	properties := schema["properties"].(map[string]any)
	delete(properties, "metadata") // the definition leaves it open
	properties["metadata"] = map[string]any{}
	closeObjects(schema)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("definition.json", schema); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("definition.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closeObjects turns OpenAPI's structural schemas into JSON schemas that refuse what the API server would drop.
func closeObjects(s map[string]any) {
	if s["x-kubernetes-int-or-string"] == true {
		s["type"] = []any{"integer", "string"}
		delete(s, "anyOf")
	}
	if p, ok := s["properties"].(map[string]any); ok {
		if _, open := s["additionalProperties"]; !open && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
		for _, v := range p {
			closeObjects(v.(map[string]any))
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := s[key].(map[string]any); ok {
			closeObjects(sub)
		}
	}
}

func TestInferenceService(t *testing.T) {
	schema := definition(t, kserve, "config/crd/full/serving.kserve.io_inferenceservices.yaml", "v1beta1")
	validate := func(doc []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	doc := documents(t, "kserve.yaml")[0]
	if err := validate(doc); err != nil {
		t.Errorf("kserve.yaml: %v", err)
	}
	for _, broken := range []string{`"initContainers":`, `"modelFormat":`, `"emptyDir":`} {
		if !bytes.Contains(doc, []byte(broken)) || validate(bytes.Replace(doc, []byte(broken), []byte(`"misspelt":`), 1)) == nil {
			t.Errorf("the schema accepts a misspelt %s", broken)
		}
	}
	var service struct {
		Spec struct {
			Predictor struct {
				SecurityContext *corev1.PodSecurityContext
				Volumes         []corev1.Volume
				InitContainers  []corev1.Container
				Model           struct {
					corev1.Container
					ModelFormat any
					StorageURI  string `json:"storageUri"`
				}
			}
		}
	}
	if err := json.Unmarshal(doc, &service); err != nil {
		t.Fatal(err)
	}
	p := service.Spec.Predictor
	checkPod(t, "kserve.yaml", &corev1.PodSpec{SecurityContext: p.SecurityContext, Volumes: p.Volumes, InitContainers: p.InitContainers, Containers: []corev1.Container{p.Model.Container}})
}

// The chart passes these through to the pod as they are.
func TestProductionStackValues(t *testing.T) {
	type modelSpec struct {
		Name, Repository, Tag, ModelURL, RequestMemory string
		ReplicaCount, RequestCPU, RequestGPU           int
		Env                                            []corev1.EnvVar
		ExtraVolumes                                   []corev1.Volume
		ExtraVolumeMounts                              []corev1.VolumeMount
	}
	var values struct {
		ServingEngineSpec struct {
			EnableEngine bool
			ModelSpec    []modelSpec
		}
	}
	if err := strict(documents(t, "production-stack.yaml")[0], &values); err != nil {
		t.Fatal(err)
	}
	m := values.ServingEngineSpec.ModelSpec[0]
	var artifact string
	for _, e := range m.Env {
		if e.Name == "MEDUSA_ARTIFACT" {
			artifact = e.Value
		}
	}
	mount := m.ExtraVolumeMounts[0]
	if mount.Name != m.ExtraVolumes[0].Name || m.ExtraVolumes[0].Image == nil || !pinned(m.ExtraVolumes[0].Image.Reference) ||
		artifact != mount.MountPath+"/artifact.medusa" || mount.SubPath != "opt/medusa" {
		t.Errorf("volume %+v is mounted by %+v for %s", m.ExtraVolumes[0], mount, artifact)
	}
}
