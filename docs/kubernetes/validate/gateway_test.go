package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// The versions whose resource definitions are meant.
const (
	gatewayAPI = "sigs.k8s.io/gateway-api@v1.4.0"
	inference  = "sigs.k8s.io/gateway-api-inference-extension@v1.5.0"
)

// The manifests of docs/kubernetes/gateway, all of which the kustomization names.
func TestGatewayManifests(t *testing.T) {
	definitions := map[string]*jsonschema.Schema{
		"Gateway":       definition(t, gatewayAPI, "config/crd/standard/gateway.networking.k8s.io_gateways.yaml", "v1"),
		"HTTPRoute":     definition(t, gatewayAPI, "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml", "v1"),
		"InferencePool": definition(t, inference, "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml", "v1"),
	}
	var base struct {
		Resources          []string
		ConfigMapGenerator []struct{ Files []string }
	}
	data, err := os.ReadFile(filepath.Join("..", "gateway", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &base); err != nil {
		t.Fatal(err)
	}
	named := append(base.Resources, "kustomization.yaml")
	for _, g := range base.ConfigMapGenerator {
		named = append(named, g.Files...)
	}
	files, err := filepath.Glob("../gateway/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(named, filepath.Base(f)) {
			t.Errorf("the kustomization does not name %s", f)
		}
	}
	seen := map[string]int{}
	for _, name := range base.Resources {
		for _, doc := range documents(t, filepath.Join("gateway", name)) {
			kind, err := checkObject(t, name, doc, definitions)
			if err != nil {
				t.Errorf("%s: %s: %v", name, kind, err)
			}
			seen[kind]++
		}
	}
	for _, kind := range []string{"Gateway", "HTTPRoute", "InferencePool", "Deployment", "DaemonSet", "Role", "NetworkPolicy", "Service"} {
		if seen[kind] == 0 {
			t.Errorf("no %s", kind)
		}
	}
	pool := documents(t, "gateway/pool.yaml")[2]
	for _, broken := range []string{`"endpointPickerRef":`, `"targetPorts":`, `"matchLabels":`} {
		wrong := bytes.Replace(pool, []byte(broken), []byte(`"misspelt":`), 1)
		if _, err := checkObject(t, "pool.yaml", wrong, definitions); err == nil || bytes.Equal(wrong, pool) {
			t.Errorf("the schema accepts a misspelt %s", broken)
		}
	}
}

// The example of medusa plan's labels (simulate.TestLabels compares it with what the command writes) has nodes of the Kubernetes API. The DaemonSet that
// brings an artifact goes to those of them that have its label, and to no others.
func TestPlannedNodes(t *testing.T) {
	var d appsv1.DaemonSet
	if err := strict(documents(t, "gateway/artifacts.yaml")[0], &d); err != nil {
		t.Fatal(err)
	}
	terms := d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 1 || terms[0].MatchExpressions[0].Operator != corev1.NodeSelectorOpExists {
		t.Fatalf("the affinity is %+v", terms)
	}
	key := terms[0].MatchExpressions[0].Key
	with, without := 0, 0
	for _, doc := range documents(t, "plan/labels.yaml") {
		var n corev1.Node
		if err := strict(doc, &n); err != nil || n.Kind != "Node" || n.APIVersion != "v1" {
			t.Fatalf("%s: %v", doc, err)
		}
		for l, value := range n.Labels {
			if problems := append(validation.IsQualifiedName(l), validation.IsValidLabelValue(value)...); len(problems) > 0 {
				t.Errorf("%s: label %s: %q", n.Name, l, problems)
			}
		}
		if problems := validation.IsDNS1123Subdomain(n.Name); len(problems) > 0 {
			t.Errorf("name %s: %q", n.Name, problems)
		}
		if n.Labels[key] == "" {
			without++
		} else {
			with++
		}
	}
	if with == 0 || without == 0 {
		t.Errorf("%d nodes have the label %s, %d have not: the example shows nothing", with, key, without)
	}
}

// checkObject holds an object against its types or its definition, and pods against what types cannot say.
func checkObject(t *testing.T, name string, doc []byte, definitions map[string]*jsonschema.Schema) (kind string, err error) {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(doc, &head); err != nil {
		return "", err
	}
	if d := definitions[head.Kind]; d != nil {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		if err != nil {
			return head.Kind, err
		}
		return head.Kind, d.Validate(v)
	}
	types := map[string]any{"v1 Namespace": &corev1.Namespace{}, "v1 Service": &corev1.Service{}, "v1 ServiceAccount": &corev1.ServiceAccount{},
		"apps/v1 Deployment": &appsv1.Deployment{}, "apps/v1 DaemonSet": &appsv1.DaemonSet{}, "rbac.authorization.k8s.io/v1 Role": &rbacv1.Role{},
		"rbac.authorization.k8s.io/v1 RoleBinding": &rbacv1.RoleBinding{}, "networking.k8s.io/v1 NetworkPolicy": &networkingv1.NetworkPolicy{}}
	into := types[head.APIVersion+" "+head.Kind]
	if into == nil {
		return head.Kind, fmt.Errorf("unexpected %s", head.APIVersion)
	}
	if err := strict(doc, into); err != nil {
		return head.Kind, err
	}
	var pod *corev1.PodSpec
	switch o := into.(type) {
	case *appsv1.Deployment:
		pod = &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		pod = &o.Spec.Template.Spec
	default:
		return head.Kind, nil
	}
	for _, problem := range problems(pod) {
		if head.Kind == "DaemonSet" && problem == "container agent does not go through medusa restore" {
			continue // the agent starts its engines so
		}
		t.Errorf("%s: %s", name, problem)
	}
	return head.Kind, nil
}

// Each agent has a policy for the artifacts of its engines, and no container can write to the policy or its keys.
func TestAgentsHaveAPolicy(t *testing.T) {
	var d appsv1.DaemonSet
	if err := strict(documents(t, "gateway/agents.yaml")[0], &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "MEDUSA_TRUST" })
		if at < 0 {
			t.Errorf("container %s has no policy", c.Name)
			continue
		}
		policy := c.Env[at].Value
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == policy }) {
			t.Errorf("container %s: %s is not mounted", c.Name, policy)
		}
		for _, m := range c.VolumeMounts {
			if filepath.Dir(m.MountPath) == filepath.Dir(policy) && !m.ReadOnly {
				t.Errorf("container %s can write to %s", c.Name, m.MountPath)
			}
		}
	}
}
