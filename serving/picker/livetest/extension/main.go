// Command extension is the endpoint picker of the Gateway API inference extension itself, assembled from its public packages, because its own command
// wants a cluster. It picks any endpoint at random.
//
// In: the addresses of pods, and their port. Out: the extension's answers to Envoy, at a port. Fails: a port that is taken.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/datalayer"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/datastore"
	dl "sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/datalayer"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/plugin"
	sch "sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/scheduling"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/requesthandling/parsers/openai"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/picker"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/profile"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/requestcontrol"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/server"
)

func main() {
	port := flag.Int("port", 9002, "port for Envoy")
	pods := flag.String("pods", "", "addresses of pods")
	target := flag.Int("target", 8000, "port of the pods")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *port, strings.Split(*pods, ","), *target); err != nil {
		fmt.Fprintf(os.Stderr, "extension: %v\n", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, port int, pods []string, target int) error {
	pool := &datalayer.EndpointPool{Selector: map[string]string{"app": "gpus"}, TargetPorts: []int{target}, Namespace: "default", Name: "gpus"}
	store := datastore.NewDatastore(ctx, endpoints{}, 0).WithEndpointPool(pool)
	for i, address := range pods {
		store.PodUpdateOrAddIfNotExist(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Namespace: pool.Namespace, Labels: pool.Selector},
			Status:     corev1.PodStatus{PodIP: address, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	}
	candidates := requestcontrol.NewDatastoreEndpointCandidates(store)
	scheduler := scheduling.NewSchedulerWithConfig(scheduling.NewSchedulerConfig(profile.NewSingleProfileHandler(),
		map[string]sch.SchedulerProfile{"default": scheduling.NewSchedulerProfile().WithPicker(picker.NewMaxScorePicker(1))}))
	parser := openai.NewOpenAIParser()
	s := server.NewDefaultExtProcServerRunner()
	s.GrpcPort, s.SecureServing, s.UseExperimentalDatalayerV2 = port, false, true
	s.Datastore, s.Parser, s.SaturationDetector = store, parser, idle{}
	s.Director = requestcontrol.NewDirectorWithConfig(store, scheduler, requestcontrol.NewLegacyAdmissionController(idle{}, candidates), parser, candidates, requestcontrol.NewConfig())
	fmt.Fprintln(os.Stderr, "serving")
	return s.AsRunnable(logr.Discard()).Start(ctx)
}

// endpoints have no metrics to collect.
type endpoints struct{}

func (endpoints) NewEndpoint(_ context.Context, m *dl.EndpointMetadata, _ datalayer.PoolInfo) dl.Endpoint {
	return dl.NewEndpoint(m, nil)
}

func (endpoints) ReleaseEndpoint(dl.Endpoint) {}

// idle reports that no endpoint is ever full.
type idle struct{}

func (idle) TypedName() plugin.TypedName { return plugin.TypedName{Type: "idle", Name: "idle"} }

func (idle) Saturation(context.Context, []dl.Endpoint) float64 { return 0 }
