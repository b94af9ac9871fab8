"""vLLM's CUDA platform with Medusa's worker. In and out: as attach, and platform.choose_engines and choose_worker."""

from vllm.platforms.cuda import CudaPlatform

from medusa_graphs.attach import attach

from .platform import choose_engines, choose_worker

COMMUNICATOR = "medusa_vllm.communicators.Communicator"


class Platform(CudaPlatform):
    """The enumeration value is inherited, so that vLLM's other code still sees CUDA."""

    @classmethod
    def check_and_update_config(cls, vllm_config):
        attach()
        if choose_engines(vllm_config):
            choose_worker(vllm_config.parallel_config)
        super().check_and_update_config(vllm_config)

    @classmethod
    def get_device_communicator_cls(cls):
        return COMMUNICATOR
