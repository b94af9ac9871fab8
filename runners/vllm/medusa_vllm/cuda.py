"""vLLM's CUDA platform with Medusa's worker. In and out: as platform.choose_worker."""

from vllm.platforms.cuda import CudaPlatform

from .platform import choose_worker

COMMUNICATOR = "medusa_vllm.communicators.Communicator"


class Platform(CudaPlatform):
    """Still CUDA to everything in vLLM that asks: the enumeration value is inherited."""

    @classmethod
    def check_and_update_config(cls, vllm_config):
        choose_worker(vllm_config.parallel_config)
        super().check_and_update_config(vllm_config)

    @classmethod
    def get_device_communicator_cls(cls):
        return COMMUNICATOR
